// The types and the numbering of threads that every kernel of ours uses.
//
// Arrays have fixed widths: row starts are i64, vertices u32, keys of edges u64. A block is a whole
// number of warps, laid out in one dimension. An *id* counts within the warp or the block, a
// *number* within the grid.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u32 ALL_LANES = ~0u;

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ u32 warp_id() { return threadIdx.x >> 5; }

// Where the number of a block's threads is known when compiling, THREADS, kernels need fewer
// registers; 0: it is not.
template <u32 THREADS = 0>
__device__ __forceinline__ u32 block_threads() {
  return THREADS ? THREADS : blockDim.x;
}

template <u32 THREADS = 0>
__device__ __forceinline__ i64 thread_number() {
  return i64(blockIdx.x) * block_threads<THREADS>() + threadIdx.x;
}

template <u32 THREADS = 0>
__device__ __forceinline__ i64 thread_count() {
  return i64(gridDim.x) * block_threads<THREADS>();
}

template <u32 THREADS = 0>
__device__ __forceinline__ i64 warp_number() {
  return i64(blockIdx.x) * (block_threads<THREADS>() >> 5) + warp_id();
}

template <u32 THREADS = 0>
__device__ __forceinline__ i64 warp_count() {
  return i64(gridDim.x) * (block_threads<THREADS>() >> 5);
}
