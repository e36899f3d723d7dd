// Prefix sums over a whole grid in one launch: a scan in each block, then a look back.
//
// Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016.
// A tile publishes its sum at once and its prefix when it knows it, each in one word together
// with what the word is, so no fence is needed. Tiles are numbered in the order in which their
// blocks start, hence those looked back at are under way and the wait ends.
//
// Requires: `status` is u64[1 + tiles], zero; [0] hands out tiles. Sums stay under 2^62.
#pragma once
#include "lpma/backend/cuda/store.cuh"

constexpr u64 SUM = 1ull << 62, PREFIX = 2ull << 62, VALUE = SUM - 1;
constexpr u32 ALL = 0xffffffffu;

// The next tile, for the whole block.
__device__ __forceinline__ u32 take_tile(u64* status) {
  __shared__ u32 tile;
  if (threadIdx.x == 0) tile = atomicAdd((u32*)status, 1u);
  __syncthreads();
  return tile;
}

__device__ __forceinline__ u64 warp_sum(u64 value) {
  for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

// The sum of what is before `tile`; for one whole warp.
__device__ __forceinline__ u64 look_back(u64* status, u32 tile, u64 sum) {
  volatile u64* words = status + 1;
  u32 lane = threadIdx.x & 31;
  if (tile == 0) {
    if (lane == 0) words[0] = PREFIX | sum;
    return 0;
  }
  if (lane == 0) words[tile] = SUM | sum;
  u64 before = 0;
  for (i64 nearest = i64(tile) - 1;; nearest -= 32) {
    u64 word = PREFIX;  // before the first tile
    if (nearest >= lane)
      while ((word = words[nearest - lane]) == 0) {
      }
    u32 known = __ballot_sync(ALL, word >> 63);
    u32 last = known ? __ffs(known) - 1 : 31;
    before += warp_sum(lane <= last ? word & VALUE : 0);
    if (known) break;
  }
  if (lane == 0) words[tile] = PREFIX | (before + sum);
  return before;
}

// The sum of `value` over all threads before this one, of this tile and of those before it; for
// blocks of whole warps, at most 1024 threads.
__device__ __forceinline__ u64 grid_prefix(u64* status, u32 tile, u64 value) {
  __shared__ u64 sums[32];
  __shared__ u64 before;
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  u64 inclusive = value;
  for (int step = 1; step < 32; step <<= 1) {
    u64 left = __shfl_up_sync(ALL, inclusive, step);
    if (lane >= step) inclusive += left;
  }
  if (lane == 31) sums[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    u64 own = lane < warps ? sums[lane] : 0, upto = own;
    for (int step = 1; step < 32; step <<= 1) {
      u64 left = __shfl_up_sync(ALL, upto, step);
      if (lane >= step) upto += left;
    }
    if (lane < warps) sums[lane] = upto - own;
    u64 prefix = look_back(status, tile, __shfl_sync(ALL, upto, 31));
    if (lane == 0) before = prefix;
  }
  __syncthreads();
  return before + sums[warp] + inclusive - value;
}
