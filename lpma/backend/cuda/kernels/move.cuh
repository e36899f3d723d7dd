// Putting slots where they belong: columns copied slot by slot, windows spread evenly.
//
// The mover (leaves.cu, windows.cu), the rebuild (rebuild.cu) and shrinking (shrink.cu) share it;
// nothing else moves an edge between segments.
#pragma once
#include "lpma/backend/cuda/kernels/work.cuh"

constexpr int SLOTS_A_LANE = SEGMENT > 32 ? SEGMENT / 32 : 1;

// A set of columns outside the store: in a block's shared memory, or the scratch of large windows.
struct Columns {
  u64* keys;
  Weight* weights;
  i64* times;
};

// What a slot holds.
struct Content {
  u64 key;
  Weight weight;
  i64 time;
};

__device__ __forceinline__ Content content_at(const Store& s, Slot at, u32 position) {
  return {key_at(s, at, position), weight_at(s, at, position), time_at(s, at, position)};
}

__device__ __forceinline__ void set_content(const Store& s, Slot at, u32 position, Content c) {
  s.keys[at.level][at.index + position] = c.key;
  set_value(s, at, position, c.weight, c.time);
}

__device__ __forceinline__ Content content_of(const Columns& from, u64 i) {
  return {from.keys[i], WEIGHT_BYTES ? from.weights[i] : Weight(0), TIMES ? from.times[i] : 0};
}

__device__ __forceinline__ void put_value(const Columns& to, u64 i, Weight weight, i64 time) {
  if (WEIGHT_BYTES) to.weights[i] = weight;
  if (TIMES) to.times[i] = time;
}

__device__ __forceinline__ void put_content(const Columns& to, u64 i, Content c, bool value) {
  to.keys[i] = c.key;
  if (value) put_value(to, i, c.weight, c.time);
}

__device__ __forceinline__ i64 time_of_row(const Work& w, const Batch& b, u32 row) {
  return time_of(b, w.time_place[row]);
}

// What a row's action puts into a slot.
__device__ __forceinline__ Content content_of_row(const Work& w, const Batch& b, const u64* keys,
                                                  u32 row) {
  return {keys[row], w.weight[row], time_of_row(w, b, row)};
}

// Store slot `n` of `total` into its segment, in a window of 2^layer segments from rank `first` on.
// The slot that begins a segment also sets its fence.
__device__ __forceinline__ void spread_slot(const Store& s, u32 first, int layer, u64 total, u64 n,
                                            Content c) {
  u64 k = segment_of(s, first, n, total, layer), begin = share(s, first, k, total, layer);
  set_content(s, segment_at(s, first + u32(k)), u32(n - begin), c);
  if (n != begin) return;
  // Segments before it that get nothing end here too: nothing is located into them. Behind the last
  // slot there is at most one, which is not there, and its fence stays its successor's.
  for (; k > 0 && share(s, first, k, total, layer) == n; --k)
    s.fences[heap_number(s, first + u32(k))] = c.key;
}

// Write the counts of all windows inside a window of `total` slots, spread evenly over 2^layer
// segments. The caller takes nodes first, first + step … of the window's subtree.
__device__ __forceinline__ void spread_counts(const Store& s, u32 window, int layer, u64 total,
                                              u64 first, u64 step) {
  u64 nodes = 2ull << layer;
  u32 rank = u32((u64(window) << layer) - (1ull << s.m));
  for (u64 node = first < 2 ? first + step : first; node < nodes; node += step) {
    int depth = 63 - __clzll(node), up = layer - depth;
    u64 j = node - (1ull << depth);
    u64 count = share(s, rank, (j + 1) << up, total, layer) - share(s, rank, j << up, total, layer);
    s.counts[(u64(window) << depth) + j] = count;
  }
}

// Set the fences inside a window that became empty: all become the fence of its successor.
__device__ __forceinline__ void close_empty(const Store& s, u32 first, int layer, u64 begin,
                                            u64 step) {
  u32 after = first + (1u << layer);
  u64 fence = after == 1u << s.m ? LAST_FENCE : s.fences[heap_number(s, after)];
  for (u64 k = begin; k < 1ull << layer; k += step)
    if (k) s.fences[heap_number(s, first + u32(k))] = fence;
}

// The slots that will stand in a window before segment `rank`: the sum of the counts to its left.
__device__ __forceinline__ u64 base_in_window(const Store& s, u32 rank, int layer) {
  u64 before = 0;
  for (int up = 0; up < layer; ++up) {
    u32 node = leaf_window(s, rank) >> up;
    if (node & 1) before += s.counts[node - 1];
  }
  return before;
}

// The same by a warp, a lane for each layer.
__device__ __forceinline__ u64 base_by_warp(const Store& s, u32 rank, int layer) {
  u64 before = 0;
  for (int up = lane_id(); up < layer; up += 32) {
    u32 node = leaf_window(s, rank) >> up;
    if (node & 1) before += s.counts[node - 1];
  }
  return warp_sum(before);
}

// Where each of the lane's slots of a segment goes, into `to`; -1 where it is removed or, with
// `stay` false, does not move. `marks` counts the insertions before each slot, and its removal <<
// 16.
__device__ __forceinline__ void find_targets(const u32* marks, u32 held, bool stay, int* to) {
  u32 before = 0;
#pragma unroll
  for (int i = 0; i < SLOTS_A_LANE; ++i) {
    u32 j = lane_id() + 32 * i;
    u32 mark = j < SEGMENT ? marks[j] : 0;
    u32 inclusive = warp_inclusive(mark);
    u32 inserted = (before + inclusive) & 0xffff, removed = (before + inclusive - mark) >> 16;
    bool moves = stay || inserted != removed;
    to[i] = j < held && !(mark >> 16) && moves ? int(j + inserted - removed) : -1;
    before += __shfl_sync(ALL_LANES, inclusive, 31);
  }
}

// What a kernel needs to carry out windows.
struct Moving {
  const Store& s;
  const Batch& b;
  const Work& w;
  const Columns scratch;
  const u64* keys;
  bool settled;  // there are no actions: windows only spread what is there
};

__device__ __forceinline__ Content content_of_row(const Moving& moving, u32 row) {
  return content_of_row(moving.w, moving.b, moving.keys, row);
}

// The number of slots that the segment of `rank` holds now. Its count says what it will hold after
// the batch; t: which touched leaf it is, -1 for none.
__device__ __forceinline__ u32 held_now(const Moving& moving, u32 rank, i64 t) {
  u32 after = slots_in(moving.s, rank);
  return t < 0 || moving.settled ? after : after - net_change(moving.w, t, t + 1);
}
