// Scans of the whole store: in-edges without a store of in-neighbours, and the largest vertex.
//
// Idea: each slot is read once (8 bytes). The scan for targets looks a key's target up in the
// rising targets by binary search, whose upper layers stay in the L1 cache. Keys outside their
// range, nearly all for few targets, need no search.
#include "lpma/backend/cuda/kernels/pairs.cuh"
#include "lpma/backend/cuda/kernels/states.cuh"

// Find edges into `targets`, which never fall and may repeat. found[i] (may be null) becomes true
// where an edge goes into targets[i]. Each such edge is written to `which` and `source`, in no
// order, where there is room; `hits` (may be null) counts them all.
extern "C" __global__ void __launch_bounds__(THREADS)
    scan_targets(const __grid_constant__ Store s, const u32* targets, i64 n, bool* found,
                 i64* which, u32* source, i64 room, u64* hits) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u32 least = targets[0], most = targets[n - 1];
#pragma unroll TOGETHER
  for (u32 tile = 0; tile < TILES; ++tile) {
    Spot spot = spot_in(s, group, tile);
    u64 key = spot.filled ? key_at(s, spot.at) : MARKER;
    u32 target = key_dst(key);
    if (target == MARKER || target < least || target > most) continue;
    i64 i = lower_bound(targets, i64(0), n, target);
    for (; i < n && targets[i] == target; ++i) {
      if (found) found[i] = true;
      if (!hits) continue;
      u64 place = atomicAdd(hits, 1ull);
      if (place >= room) continue;
      which[place] = i;
      source[place] = key_src(key);
    }
  }
}

// 1 + the larger of an edge's ends, or of a marker's one.
__device__ __forceinline__ u64 end_of(u64 key) {
  u32 source = key_src(key), target = is_marker(key) ? 0 : key_dst(key);
  return u64(max(source, target)) + 1;
}

// largest becomes 1 + the largest id among ends of edges and markers; it stays 0 where there is
// none.
extern "C" __global__ void __launch_bounds__(THREADS)
    largest_vertex(const __grid_constant__ Store s, u64* largest) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u32 in_group = warp_inclusive(group.count) - group.count;
  u64 most = 0;
#pragma unroll 1
  for (u32 number = 0; number < STRETCHES; ++number) {
    Stretch read = read_stretch<true, false>(s, group, in_group, number);
#pragma unroll
    for (u32 tile = 0; tile < TILES_AT_ONCE; ++tile) {
      if (has_first(read.filled, tile)) most = max(most, end_of(read.keys[tile].first));
      if (has_second(read.filled, tile)) most = max(most, end_of(read.keys[tile].second));
    }
  }
  most = warp_max(most);
  // Most warps see a larger one already, and do not queue up.
  if (lane_id() == 0 && most > *largest) atomicMax(largest, most);
}
