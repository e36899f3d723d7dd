// Sums, extremes and scans over the lanes of a warp, and places for those that ask.
//
// Idea: values travel between registers by shuffles, five steps for 32 lanes. From compute
// capability 8.0 on, one instruction does the same for 32-bit integers.
//
// Requires: all 32 lanes call, and have converged (__syncwarp).
#pragma once
#include "lpma/cuda/types.cuh"

// How many of the lanes in `mask` come before this one.
__device__ __forceinline__ u32 lanes_before(u32 mask) {
  return __popc(mask & ((1u << lane_id()) - 1));
}

// A place for each lane that asks, from *count on, which grows by as many: one atomic addition for
// all of them. Lanes get places in their order; one that does not ask gets none that is its own.
template <typename Count>
__device__ __forceinline__ Count place_of_lane(bool asks, Count* count) {
  u32 asking = __ballot_sync(ALL_LANES, asks);
  if (!asking) return 0;
  Count first = 0;
  if (lane_id() == 0) first = atomicAdd(count, Count(__popc(asking)));
  return __shfl_sync(ALL_LANES, first, 0) + lanes_before(asking);
}

// The sum over the lanes up to this one.
template <typename T>
__device__ __forceinline__ T warp_inclusive(T x) {
  static_assert(sizeof(T) >= 4, "a sum of flags is no flag");
  for (u32 by = 1; by < 32; by <<= 1) {
    T y = __shfl_up_sync(ALL_LANES, x, by);
    if (lane_id() >= by) x += y;
  }
  return x;
}

// As `place_of_lane`, but a lane asks for any number of places, and gets the first of them.
template <typename Count>
__device__ __forceinline__ Count places_of_lane(u32 asked, Count* count) {
  u32 through = warp_inclusive(asked);
  Count first = 0;
  if (lane_id() == 31 && through) first = atomicAdd(count, Count(through));
  return __shfl_sync(ALL_LANES, first, 31) + through - asked;
}

// Append the values of the lanes that ask to a list of *count.
template <typename T, typename Count>
__device__ __forceinline__ void append_of_lanes(bool asks, T value, T* list, Count* count) {
  Count place = place_of_lane(asks, count);
  if (asks) list[place] = value;
}

// The sum over each group of WIDTH neighbouring lanes, which all of them get.
template <int WIDTH, typename T>
__device__ __forceinline__ T group_sum(T x) {
  static_assert(sizeof(T) >= 4, "a sum of flags is no flag");
  for (int by = WIDTH / 2; by; by >>= 1) x += __shfl_xor_sync(ALL_LANES, x, by);
  return x;
}

template <typename T>
__device__ __forceinline__ T warp_sum(T x) {
  return group_sum<32>(x);
}

template <typename T>
__device__ __forceinline__ T warp_max(T x) {
  for (int by = 16; by; by >>= 1) x = max(x, __shfl_xor_sync(ALL_LANES, x, by));
  return x;
}

template <typename T>
__device__ __forceinline__ T warp_min(T x) {
  for (int by = 16; by; by >>= 1) x = min(x, __shfl_xor_sync(ALL_LANES, x, by));
  return x;
}

// 32-bit integers, in one instruction where there is one. All lanes get the result.
__device__ __forceinline__ u32 lanes_sum(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(ALL_LANES, x);
#else
  return warp_sum(x);
#endif
}

__device__ __forceinline__ u32 lanes_or(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(ALL_LANES, x);
#else
  for (int by = 16; by; by >>= 1) x |= __shfl_xor_sync(ALL_LANES, x, by);
  return x;
#endif
}

__device__ __forceinline__ i32 lanes_min(i32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(ALL_LANES, x);
#else
  return warp_min(x);
#endif
}
