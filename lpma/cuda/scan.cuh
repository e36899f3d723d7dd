// Sums over a block: one value a warp is exchanged through shared memory.
//
// Idea: each warp first sums its own lanes (lanes.cuh) and its last lane publishes the result. Up
// to 8 warps every thread then adds up the published values itself, in the order of the warps:
// independent reads take less time than a chain of shuffles. In larger blocks every warp scans
// them by shuffles instead.
//
// The order is fixed by THREADS alone, so that sums of floating-point numbers are the same in every
// run.
//
// Requires: blocks of exactly THREADS threads, all of which call. The functions begin with a
// barrier, so that they can be called again and again.
#pragma once
#include "lpma/cuda/lanes.cuh"

// The sum over the warps before this one of what their last lanes pass; `total` gets that over all
// warps. Every thread gets both.
template <int THREADS, typename T>
__device__ __forceinline__ T warps_before(T of_own, T& total) {
  constexpr u32 WARPS = THREADS / 32;
  __shared__ T of_warp[WARPS];
  __syncthreads();  // the readers of the call before are done
  if (lane_id() == 31) of_warp[warp_id()] = of_own;
  __syncthreads();
  if constexpr (WARPS <= 8) {
    T before = {};
    total = {};
    for (u32 i = 0; i < WARPS; ++i) {
      if (i == warp_id()) before = total;
      total = total + of_warp[i];
    }
    return before;
  } else {
    T upto = warp_inclusive(lane_id() < WARPS ? of_warp[lane_id()] : T{});
    total = __shfl_sync(ALL_LANES, upto, 31);
    T before = __shfl_sync(ALL_LANES, upto, warp_id() ? warp_id() - 1 : 0);
    return warp_id() ? before : T{};
  }
}

// The sum over the threads before this one; `total` gets that over all.
template <int THREADS, typename T>
__device__ __forceinline__ T block_exclusive(T x, T& total) {
  T upto = warp_inclusive(x);
  return warps_before<THREADS>(upto, total) + upto - x;
}

// The sum over the block, to every thread.
template <int THREADS, typename T>
__device__ __forceinline__ T block_sum(T x) {
  T total;
  warps_before<THREADS>(warp_sum(x), total);
  return total;
}
