// The barrier over all blocks of a cooperative launch, and reading what was written before it.
//
// Idea: a word counts the blocks that have arrived. Block 0 adds what the others leave of 2^31, so
// that the last to arrive, whichever it is, flips the top bit and clears the bits below: the word is
// ready for the next barrier.
//
// The driver keeps such a word for each cooperative launch, and gives its address in two registers.
// It is the word that `this_grid().sync()` of CUDA's cooperative groups counts in, in the same way.
// Their header is large: a kernel that includes it takes up to a second more to compile.
#pragma once
#include "lpma/cuda/types.cuh"

// The launch's word for barriers: the second of its workspace.
__device__ __forceinline__ u32* grid_barrier() {
  u32 high, low;
  asm("mov.u32 %0, %%envreg1;" : "=r"(high));
  asm("mov.u32 %0, %%envreg2;" : "=r"(low));
  return (u32*)(u64(high) << 32 | low) + 1;
}

// Wait until all threads of the grid are here. All threads see everything written before it.
// REQUIRES: a cooperative launch, of no more blocks than the device holds at once; one dimension.
__device__ __forceinline__ void grid_sync() {
  constexpr u32 TOP = 1u << 31;
  __barrier_sync(0);
  if (threadIdx.x == 0) {
    u32* arrived = grid_barrier();
    u32 before, now, mine = blockIdx.x ? 1 : TOP - (gridDim.x - 1);
    asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(arrived), "r"(mine) : "memory");
    do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
    while (!((before ^ now) & TOP));
  }
  __barrier_sync(0);
}

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
