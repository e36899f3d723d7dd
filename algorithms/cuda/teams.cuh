// Threads that read one row together: a warp a short one, a block a long one.
//
// Every function of a team is called by all of its threads, and gives all of them the same result.
#pragma once
#include "grid.cuh"

struct Warp {
  __device__ static u32 rank() { return lane_id(); }
  __device__ static u32 size() { return 32; }
  __device__ static u32 sum(u32 x) { return warp_sum(x); }
};

struct Block {
  __device__ static u32 rank() { return threadIdx.x; }
  __device__ static u32 size() { return blockDim.x; }
  __device__ static u32 sum(u32 x) {
    u32 total;
    block_inclusive(x, total);
    return total;
  }
};

// How many of the row's estimates are h or more.
template <typename Team>
__device__ __forceinline__ i32 at_least(const u32* row, u32 length, const i32* estimate, i32 h) {
  u32 count = 0;
  for (u32 i = Team::rank(); i < length; i += Team::size())
    count += __ldcg(estimate + row[i]) >= h;
  return i32(Team::sum(count));
}
