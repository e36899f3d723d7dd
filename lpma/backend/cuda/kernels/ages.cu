// The times of a store and of a batch: which edges are older than a time, and what is left without
// them.
//
// Idea: a warp takes a group of segments (tiles.cuh) and looks at its times twice, once to count
// and once to write; the second time they come from the cache.
#include "lpma/backend/cuda/kernels/tiles.cuh"
#include "lpma/cuda/lookback.cuh"

__device__ __forceinline__ bool is_older(const Store& s, const Spot& spot, i64 before) {
  return spot.filled && time_at(s, spot.at) < before && !is_marker(key_at(s, spot.at));
}

// Write the slots of a group that are `wanted` from row `first` on: put(row, slot).
template <class Wanted, class Put>
__device__ __forceinline__ void put_spots(const Store& s, const Group& group, u64 first,
                                          Wanted wanted, Put put) {
#pragma unroll TOGETHER
  for (u32 tile = 0; tile < TILES; ++tile) {
    Spot spot = spot_in(s, group, tile);
    bool is = wanted(spot);
    u32 all = __ballot_sync(ALL_LANES, is);
    if (is) put(first + lanes_before(all), spot.at);
    first += __popc(all);
  }
}

// Count the edges older than `before` in hits[0], and the loops among them in hits[1]. They are
// written to `keys` and `times`, in no order, where there is room for all that a warp found.
extern "C" __global__ void __launch_bounds__(THREADS)
    older(const __grid_constant__ Store s, i64 before, u64* keys, i64* times, i64 room, u64* hits) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u32 found = 0, loops = 0;
#pragma unroll TOGETHER
  for (u32 tile = 0; tile < TILES; ++tile) {
    Spot spot = spot_in(s, group, tile);
    bool hit = is_older(s, spot, before);
    u64 key = hit ? key_at(s, spot.at) : 1;
    found += __popc(__ballot_sync(ALL_LANES, hit));
    loops += __popc(__ballot_sync(ALL_LANES, key_src(key) == key_dst(key)));
  }
  if (!found) return;
  u64 first = 0;
  if (lane_id() == 0) {
    first = atomicAdd(hits, u64(found));
    if (loops) atomicAdd(hits + 1, u64(loops));
  }
  first = __shfl_sync(ALL_LANES, first, 0);
  if (first + found > u64(room)) return;
  auto put = [&](u64 row, Slot at) {
    keys[row] = key_at(s, at);
    times[row] = time_at(s, at);
  };
  put_spots(s, group, first, [&](const Spot& spot) { return is_older(s, spot, before); }, put);
}

// Write all slots but the edges older than `before` to the columns, by rising key. `status`: see
// lookback.cuh; blocks take their groups in turn.
extern "C" __global__ void __launch_bounds__(THREADS)
    since(const __grid_constant__ Store s, i64 before, u64* keys, Weight* weights, i64* times,
          u64* status) {
  u32 block = take_tile(status);
  Group group = group_number(s, u64(block) * (THREADS / 32) + warp_id());
  auto stays = [&](const Spot& spot) { return spot.filled && !is_older(s, spot, before); };
  u32 stay = 0;
#pragma unroll TOGETHER
  for (u32 tile = 0; tile < TILES; ++tile)
    stay += __popc(__ballot_sync(ALL_LANES, stays(spot_in(s, group, tile))));
  u64 first = grid_prefix<THREADS>(status, block, lane_id() == 0 ? stay : 0);
  first = __shfl_sync(ALL_LANES, first, 0);
  put_spots(s, group, first, stays, [&](u64 row, Slot at) {
    keys[row] = key_at(s, at);
    if (WEIGHT_BYTES) weights[row] = weight_at(s, at);
    times[row] = time_at(s, at);
  });
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
