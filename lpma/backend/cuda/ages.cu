// The times of a store and of a batch: which edges are older than a time.
#include "lpma/backend/cuda/tiles.cuh"

// Count the edges older than `before` in `hits`, and write them to `keys` and `times`, in no order,
// where there is room for all that a warp found.
extern "C" __global__ void __launch_bounds__(THREADS)
    older(const __grid_constant__ Store s, i64 before, u64* keys, i64* times, i64 room, u64* hits) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  auto is_older = [&](u32 tile, Slot& at, u64& index) {
    Place place = place_in(group, tile);
    if (!place.filled) return false;
    at = segment_at(s, place.rank);
    index = at.index + place.position;
#if TIMES
    return s.times[at.level][index] < before && !is_marker(s.keys[at.level][index]);
#else
    return false;
#endif
  };
  Slot at;
  u64 index;
  u32 found = 0;
#pragma unroll TOGETHER
  for (u32 tile = 0; tile < TILES; ++tile)
    found += __popc(__ballot_sync(ALL_LANES, is_older(tile, at, index)));
  if (!found) return;
  u64 first = 0;
  if (lane_id() == 0) first = atomicAdd(hits, u64(found));
  first = __shfl_sync(ALL_LANES, first, 0);
  if (first + found > u64(room)) return;
#if TIMES
  for (u32 tile = 0; tile < TILES; ++tile) {
    bool hit = is_older(tile, at, index);
    u32 all = __ballot_sync(ALL_LANES, hit);
    if (hit) {
      u64 row = first + lanes_before(all);
      keys[row] = s.keys[at.level][index];
      times[row] = s.times[at.level][index];
    }
    first += __popc(all);
  }
#endif
}

// Of every step-th segment, the times of up to 32 slots, evenly spread and the first among them: one
// warp each. times[32 i …] of sample i; filled[…] says 1 where there is one, else 0.
extern "C" __global__ void __launch_bounds__(THREADS)
    sample_times(const __grid_constant__ Store s, i64 step, i64 samples, i64* times, i64* filled) {
  u64 i = (u64(blockIdx.x) * blockDim.x + threadIdx.x) >> 5;
  if (i >= u64(samples)) return;
  u32 rank = u32(i * step), lane = lane_id();
  u32 position = SEGMENT > 32 ? lane * (SEGMENT / 32) : lane;
  bool there = position < slots_in(s, rank);
  times[32 * i + lane] = there ? time_at(s, segment_at(s, rank), position) : 0;
  filled[32 * i + lane] = there;
}

// found[0] becomes 1 if one of n times is less than `before`. It lies in the host's memory.
extern "C" __global__ void __launch_bounds__(THREADS)
    any_older(const i64* times, i64 n, i64 before, volatile i64* found) {
  i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n && times[i] < before) found[0] = 1;
}
