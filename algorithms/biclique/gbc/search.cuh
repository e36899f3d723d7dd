// The histogram of a search, and its tasks: pairs of a root and a candidate, which warps take from
// one counter.
//
// The histogram counts subsets by the number of their common neighbours. A block keeps the first
// BINS bins in shared memory as u32, and adds them to the whole histogram now and then: each warp
// counts the subsets that it has added, and empties all bins when there are FLUSH. So the warps of
// a block, at most 32, cannot bring a bin to 2^32.
#pragma once
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/search.cuh"

constexpr u32 BINS = 1024;
constexpr u32 FLUSH = 1u << 26;

struct Histogram {
  u32* bins;   // u32[BINS], shared
  u64* whole;
  u32 least;   // smaller numbers of common neighbours are not counted
  u32 added;   // by this warp since it last emptied the bins

  __device__ __forceinline__ void add(u32 common) {
    if (common < least) return;
    if (common < BINS)
      atomicAdd(&bins[common], 1u);
    else
      atomicAdd(&whole[common], 1ull);
  }

  // Notes that the lanes have added at most `count`. REQUIRES: count is far less than FLUSH. Whole
  // warps call it.
  __device__ __forceinline__ void note(u32 count) {
    added += count;
    if (added < FLUSH) return;
    added = 0;
    __syncwarp();
    empty(lane_id(), 32);
  }

  __device__ __forceinline__ void empty(u32 first, u32 step) {
    for (u32 i = first; i < BINS; i += step) {
      if (bins[i] == 0) continue;
      u32 count = atomicExch(&bins[i], 0);
      if (count) atomicAdd(&whole[i], u64(count));
    }
  }
};

// A histogram with the block's bins, zeroed. Whole blocks call it.
__device__ __forceinline__ Histogram histogram_of(u64* whole, u32 least) {
  __shared__ u32 bins[BINS];
  for (u32 i = threadIdx.x; i < BINS; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  return {bins, whole, least, 0};
}

// Adds the block's bins to the whole histogram. Whole blocks call it, at the end.
__device__ __forceinline__ void finish(Histogram& histogram) {
  __syncthreads();
  histogram.empty(threadIdx.x, blockDim.x);
}

// The next task, in all lanes.
__device__ __forceinline__ i64 take_for_warp(u64* next) {
  u64 taken = 0;
  if (lane_id() == 0) taken = atomicAdd(next, 1ull);
  return i64(__shfl_sync(ALL_LANES, taken, 0));
}
