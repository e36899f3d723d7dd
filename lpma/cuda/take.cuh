// Blocks that take their work from a counter, whichever is free next.
#pragma once
#include "lpma/cuda/types.cuh"

// The next number from the counter, for the whole block, which calls it together. The first barrier
// is for a call before: all threads have read what that one took.
__device__ __forceinline__ i64 take_for_block(u64* next) {
  __shared__ i64 taken;
  __syncthreads();
  if (threadIdx.x == 0) taken = i64(atomicAdd(next, 1ull));
  __syncthreads();
  return taken;
}
