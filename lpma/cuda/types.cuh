// The widths that arrays have: row starts are i64, vertices u32.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u32 ALL_LANES = ~0u;

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ i64 thread_number() { return i64(blockIdx.x) * blockDim.x + threadIdx.x; }
