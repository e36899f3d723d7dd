// Reading all slots in key order: a warp reads a group of segments, 32 slots at a time.
//
// Idea: a group is 512 slots, or as many segments as a warp has lanes, or one segment. Lane i holds
// the count of the group's segment i, so that all loads of the group's slots can be under way at
// once. A *tile* is the 32 slots that the lanes read together. Segments start at multiples of their
// size, so a tile's loads are whole sectors, except for the last one of a segment.
//
// The number of filled slots before a group is the sum of the counts of its left siblings up the
// tree: one load a lane and no scan. Only filled slots are read.
#pragma once
#include "lpma/backend/cuda/kernels/store.cuh"
#include "lpma/cuda/lanes.cuh"

constexpr u32 GROUP = SEGMENT <= 16 ? 32 : SEGMENT >= 512 ? 1 : 512 / SEGMENT;  // segments
constexpr u32 TILES = GROUP * SEGMENT / 32;  // 2 at least
constexpr u32 TOGETHER = TILES < 4 ? TILES : 4;  // tiles whose loads are under way at once

struct Group {
  u32 first;  // segment
  u32 count;  // of segment first + lane
};

// The group of a number. All of its segments may lie beyond the last one.
__device__ __forceinline__ Group group_number(const Store& s, u64 number) {
  u32 lane = lane_id(), leaves = 1u << s.m;
  u64 first = number * GROUP;
  u32 count = lane < GROUP && first + lane < leaves ? slots_in(s, u32(first) + lane) : 0;
  return {first < leaves ? u32(first) : leaves, count};
}

// The group of this warp.
__device__ __forceinline__ Group group_of_warp(const Store& s) {
  return group_number(s, (u64(blockIdx.x) * blockDim.x + threadIdx.x) >> 5);
}

// The number of filled slots before segment `rank` < 2^m; for one whole warp.
__device__ __forceinline__ u64 slots_before(const Store& s, u32 rank) {
  u32 window = leaf_window(s, rank) >> lane_id();
  return warp_sum(window > 1 && (window & 1) ? s.counts[window - 1] : 0);
}

// A lane's slot of a tile, if it is filled.
struct Spot {
  bool filled;
  Slot at;
};

__device__ __forceinline__ Spot spot_in(const Store& s, const Group& group, u32 tile) {
  u32 slot = 32 * tile + lane_id();
  u32 i = slot / SEGMENT, position = slot % SEGMENT;
  if (position >= __shfl_sync(ALL_LANES, group.count, i)) return {false, {0, 0}};
  Slot at = segment_at(s, group.first + i);
  return {true, {at.level, at.index + position}};
}
