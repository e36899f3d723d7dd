// Sums and least values over the lanes of a warp, all of which call these.
#pragma once
#include "lpma/cuda/types.cuh"

// Sums over the lanes up to this one.
__device__ __forceinline__ u32 warp_inclusive(u32 x) {
  for (int by = 1; by < 32; by <<= 1) {
    u32 y = __shfl_up_sync(ALL_LANES, x, by);
    if (lane_id() >= by) x += y;
  }
  return x;
}

template <typename T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int by = 16; by; by >>= 1) x += __shfl_xor_sync(ALL_LANES, x, by);
  return x;
}

// Over all lanes, which all get it: one instruction from compute capability 8.0 on.
__device__ __forceinline__ u32 lanes_sum(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(ALL_LANES, x);
#else
  return warp_sum(x);
#endif
}

__device__ __forceinline__ i32 lanes_min(i32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(ALL_LANES, x);
#else
  for (int by = 16; by; by >>= 1) x = min(x, __shfl_xor_sync(ALL_LANES, x, by));
  return x;
#endif
}
