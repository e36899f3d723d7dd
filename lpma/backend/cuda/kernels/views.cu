// Views in time of a store: rows, weights and times of the edges whose time is first … last, whose
// weights may decay (lpma/time_view.py).
//
// Idea: one launch counts what each group of segments (tiles.cuh) has in the view, and finds the
// newest of it. With the running sums of that, a second one knows where each group goes, and writes
// rows and columns at once, reading each slot once: it is the snapshot of export.cu, slots left out.
//
// Bytes, an edge of the store: 8 read to count, and 8 more where keys are asked for; then 20 read,
// and 16 written for each edge in the view.
#include "lpma/backend/cuda/kernels/starts.cuh"
#include "lpma/cuda/decay.cuh"

// counts[g]: the edges in the view of group g. *newest becomes how much later than `earliest` the
// newest of them is, if it is not null, and *loops grows by how many of them are loops. keyed: there
// may be markers or loops, so that keys are read.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_view(const __grid_constant__ Store s, i64 earliest, i64 latest, bool keyed, i64* counts,
               u64* newest, u64* loops) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u32 found = 0, found_loops = 0;
  u64 later = 0;
#pragma unroll TOGETHER
  for (u32 tile = 0; tile < TILES; ++tile) {
    Spot spot = spot_in(s, group, tile);
    i64 time = spot.filled ? time_at(s, spot.at) : 0;
    bool held = spot.filled && earliest <= time && time <= latest;
    if (keyed) {
      u64 key = held ? key_at(s, spot.at) : 1;
      held = held && !is_marker(key);
      found_loops += held && key_src(key) == key_dst(key);
    }
    found += held;
    if (held) later = max(later, u64(time) - u64(earliest));
  }
  found = lanes_sum(found);
  found_loops = lanes_sum(found_loops);
  later = warp_max(later);
  if (lane_id()) return;
  counts[group.first / GROUP] = i64(found);
  if (found_loops) atomicAdd(loops, u64(found_loops));
  if (newest && later > *(volatile u64*)newest) atomicMax(newest, later);
}

// A warp's room: for a column that it packs, or for what it lists.
union ViewRoom {
  Room rows;
  Packing<Weight> weights;
  Packing<i64> times;
};

struct Columns {
  i64* indptr;
  u32* indices;
  Weight* weights;
  i64* times;
};

// What of a group is in the view; before it there are `before` slots, and `out` edges in the view.
// DECAY: weights decay.
template <bool DECAY>
__device__ __forceinline__ void write_group_view(const Store& s, const Group& group, u64 before,
                                                 u64 out, i64 earliest, i64 latest, const Decay& d,
                                                 ViewRoom& room, const Columns& to,
                                                 const Pieces& later) {
  u32 behind = slots_behind(s, group.first);
  u32 in_group = warp_inclusive(group.count) - group.count, source = NO_SOURCE;
#pragma unroll 1
  for (u32 number = 0; number < STRETCHES; ++number) {
    Stretch read = read_stretch<true, true>(s, group, in_group, number);
    if (number == 0) source = source_before(s, group.first, behind, before);
    u32 held = leave_out(read, [&](u32 tile, bool is_second) {
      i64 time = of_pair(read.times[tile], is_second);
      bool is_edge = !is_marker(of_pair(read.keys[tile], is_second));
      return is_edge && earliest <= time && time <= latest;
    });
    u32 count = count_marked(held);
    Pair<u32> targets[TILES_AT_ONCE];
#pragma unroll
    for (u32 tile = 0; tile < TILES_AT_ONCE; ++tile)
      targets[tile] = {key_dst(read.keys[tile].first), key_dst(read.keys[tile].second)};
    write_column(room.rows.targets, read, held, targets, to.indices, out, count);
    u32 listed = list_starts(room.rows.starts, read, held);
    write_starts(room.rows.starts, listed, source, out, to.indptr, later);
    if (DECAY) {
#pragma unroll
      for (u32 tile = 0; tile < TILES_AT_ONCE; ++tile) {
        Pair<Weight>& pair = read.weights[tile];
        if (!WEIGHT_BYTES) pair = {Weight(1), Weight(1)};
        if (has_first(held, tile)) pair.first = decayed(d, pair.first, read.times[tile].first);
        if (has_second(held, tile)) pair.second = decayed(d, pair.second, read.times[tile].second);
      }
    }
    if (to.weights)
      write_column(room.weights, read, held, read.weights, to.weights, out, count);
    write_column(room.times, read, held, read.times, to.times, out, count);
    out += count;
  }
}

// The view's part of rows 0 … vertices - 1, `edges` edges. counts: the running sums (inclusive) of
// what count_view wrote. weights: null if there are none. half_life: 0 if they do not decay. The
// first group also writes the entries of indptr after the last source.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    write_view(const __grid_constant__ Store s, i64 earliest, i64 latest, const i64* counts,
               i64 vertices, i64 edges, i64* indptr, u32* indices, Weight* weights, i64* times,
               u32* num_pieces, Piece* pieces, i64 now, i64 half_life, u64 most, double inverse) {
  __shared__ ViewRoom rooms[WARPS];
  ViewRoom& room = rooms[warp_id()];
  Columns to = {indptr, indices, weights, times};
  Pieces later = {num_pieces, pieces};
  Decay d = {now, half_life, most, inverse};
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u64 before = slots_before(s, group.first);
  u64 out = group.first ? counts[group.first / GROUP - 1] : 0;
  if (half_life) {
    write_group_view<true>(s, group, before, out, earliest, latest, d, room, to, later);
  } else {
    write_group_view<false>(s, group, before, out, earliest, latest, d, room, to, later);
  }
  if (group.first == 0) write_last_starts(s, vertices, edges, indptr, later);
}
