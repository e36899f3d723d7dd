// The barrier over all blocks of a cooperative launch, and reading what was written before it.
//
// CUDA's own header is large: including this file takes a kernel about 0.7 s more to compile, so
// only kernels that wait for the whole grid do.
#pragma once
#include <cooperative_groups.h>

#include "lpma/cuda/types.cuh"

// Wait until all threads of the grid are here. All threads see everything written before it.
// REQUIRES: a cooperative launch, of no more blocks than the device holds at once.
__device__ __forceinline__ void grid_sync() { cooperative_groups::this_grid().sync(); }

// A record that others wrote before the last grid_sync(), for all threads of the block. One warp
// reads it: a word that every warp of the grid read would keep them waiting for each other. It
// reads from the L2 cache, because the L1 cache may hold the record as it was.
template <typename Record>
__device__ __forceinline__ Record read_for_block(const Record* from) {
  __shared__ Record record;
  if (threadIdx.x < sizeof(Record) / 4)
    ((u32*)&record)[threadIdx.x] = __ldcg((const u32*)from + threadIdx.x);
  __syncthreads();
  return record;
}
