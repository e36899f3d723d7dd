// Barriers and sums that the algorithms' kernels share.
#pragma once
#include <cooperative_groups.h>

#include "lpma/cuda/lanes.cuh"

// For kernels launched cooperatively; everything written before it is seen after it by all.
__device__ __forceinline__ void grid_sync() { cooperative_groups::this_grid().sync(); }

// Sums over the block's threads up to this one, for blocks of whole warps; `total` gets that over
// all of them. All threads call it.
__device__ __forceinline__ u32 block_inclusive(u32 x, u32& total) {
  __shared__ u32 of_warp[32];
  u32 warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  u32 upto = warp_inclusive(x);
  __syncthreads();  // a former call's readers are done
  if (lane_id() == 31) of_warp[warp] = upto;
  __syncthreads();
  u32 sums = warp_inclusive(lane_id() < warps ? of_warp[lane_id()] : 0);
  total = __shfl_sync(ALL_LANES, sums, 31);
  u32 before = __shfl_sync(ALL_LANES, sums, warp ? warp - 1 : 0);
  return upto + (warp ? before : 0);
}

// A record that a barrier ago was written by others, for all threads of the block. One warp reads
// it, since a word that every warp of the grid asked for would keep them waiting for each other.
template <typename Record>
__device__ __forceinline__ Record read_for_block(const Record* from) {
  __shared__ Record record;
  if (threadIdx.x < sizeof(Record) / 4)
    ((u32*)&record)[threadIdx.x] = __ldcg((const u32*)from + threadIdx.x);
  __syncthreads();
  return record;
}
