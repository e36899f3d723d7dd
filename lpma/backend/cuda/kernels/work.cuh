// A batch on its way through the update kernels: sort, locate, plan, move.
//
// A *row* is a key operation. Rows are ordered by key, and by arrival within a key. Locating folds
// the rows of each key, a *run*, onto the first of them. A row that does something is an *action*,
// and the actions are listed in order. A segment with actions is a *touched leaf*.
//
// Idea: each action knows the number of insertions and removals before it. The net change of any
// range of leaves is then a difference of two such sums, and where a slot stands after the batch
// follows from a search among the actions of its segment. So every slot and every action moves by
// itself, and nothing is merged.
#pragma once
#include "lpma/backend/cuda/kernels/fold.cuh"
#include "lpma/cuda/lanes.cuh"

enum Action { SKIP, INSERT, WRITE, REMOVE };

constexpr int DIGITS = 256;  // of the radix sort
constexpr int SUMMARY_WORDS = 6;  // of u32 that a block tells the others in a scan over the grid

// What the host reads back, and what kernels tell later ones, in words of i64. The `Report` of
// work.py has the same words.
enum Report {
  SRC_BITS,     // the bitwise or of all sources; of all targets
  DST_BITS,
  BAD_KIND,     // rows that fail validation
  BAD_VERTEX,
  BAD_WEIGHT,
  BAD_HOPS,
  ROWS,         // key operations
  IN_SECOND,    // 1 where the sort ended in the second pair of columns
  LONG_RUNS,
  ACTIONS,
  TOUCHED,
  INSERTED,
  DELETED,
  MARKERS,      // net change of the number of vertex markers; of loops
  LOOPS,
  LARGEST,      // 1 + the largest vertex id of an inserted slot
  WINDOWS,      // listed windows, all above the leaves
  HELD_ABOVE,   // edges that they hold
  LARGE_SLOTS,  // scratch for windows too large for a block
  REDUNDANT,    // segments that a later round rebalances again
  CROWDED,      // leaves that a rebuild leaves to the whole grid
  LARGE_WINDOWS,  // listed windows too large for a block
  UNCHANGED,    // operations that change nothing, by reason, and expiries: Counts in runs.cuh
  WINDOWS_BY_LAYER = UNCHANGED + 2 * REASONS,
  HELD_BY_LAYER = WINDOWS_BY_LAYER + LEVELS,
  REPORT_WORDS = HELD_BY_LAYER + LEVELS
};

// The buffers of a batch, with room for a given number of rows.
struct Work {
  u64* key[2];  // of each row; the sort writes from one array to the other and back
  u32* place[2];
  u32* rank;      // of the segment a row belongs to
  u16* position;  // there: the slot to insert before, to write or to remove
  u8* action;
  Weight* weight;   // the key's weight after the batch
  u32* time_place;  // the place in the batch whose time the key takes
  u32* long_run;   // first rows of long runs
  u32* row;       // of each action; then the insertions and removals before it (one entry more)
  u32* inserts;
  u32* removes;
  u32* touched;  // rank of each touched leaf
  u32* begin;    // its first action (one entry more); then the sums before that action
  u32* leaf_inserts;
  u32* leaf_removes;
  u8* layer;          // of the window that a touched leaf moves with
  u32* window;        // listed windows, with their touched leaves first … last - 1
  u32* window_first;
  u32* window_last;
  u64* window_offset;  // in the scratch
  u32* large;          // the indices of those too large for a block
  u32* stamps;         // u32[2^(m+1)]: the number of the last plan that lists a window
  u32* histogram;      // of the sort: u32[8 passes][blocks][DIGITS]
  u32* of_block;       // for a scan over the grid: SUMMARY_WORDS a block
  i64* report;
  u32* gate;  // not 0: a batch was refused, and those behind it are for the host (order.cuh)
};

__device__ __forceinline__ void add_to(const Work& w, int word, i64 value) {
  atomicAdd((u64*)&w.report[word], (u64)value);
}

__device__ __forceinline__ const u64* row_keys(const Work& w) {
  return w.key[w.report[IN_SECOND]];
}

__device__ __forceinline__ const u32* row_places(const Work& w) {
  return w.place[w.report[IN_SECOND]];
}

// What sorting has found.
__device__ __forceinline__ bool has_bad_keys(const Work& w) {
  return w.report[BAD_KIND] | w.report[BAD_VERTEX] | w.report[BAD_HOPS];
}

// REQUIRES: since weights were looked at, there was a barrier over the grid, or another launch.
__device__ __forceinline__ bool is_bad(const Work& w) {
  return has_bad_keys(w) | (w.report[BAD_WEIGHT] != 0);
}

// The net change of the number of slots in touched leaves first … last - 1.
__device__ __forceinline__ i64 net_change(const Work& w, u32 first, u32 last) {
  return i64(w.leaf_inserts[last] - w.leaf_inserts[first]) -
         i64(w.leaf_removes[last] - w.leaf_removes[first]);
}

// What happens to a stored slot of a touched segment: how many places it moves up or down, whether
// it is removed, and whether its value is overwritten.
struct Shift {
  int by;
  bool removed, overwritten;
};

// Of the slot at `position` in a segment whose actions are lo … hi - 1. The actions before the slot
// are those up to the first one that stands behind it.
__device__ __forceinline__ Shift shift_of(const Work& w, u32 lo, u32 hi, u32 position) {
  u32 end = first_false(lo, hi, [&](u32 a) { return w.position[w.row[a]] <= position; });
  Shift shift = {int(w.inserts[end] - w.inserts[lo]) - int(w.removes[end] - w.removes[lo]), false,
                 false};
  if (end > lo) {
    u32 row = w.row[end - 1];
    if (w.position[row] == position) {
      shift.removed = w.action[row] == REMOVE;
      shift.overwritten = w.action[row] == WRITE;
    }
  }
  return shift;
}

// The position in its segment at which action `a` puts its slot; the segment's actions begin at
// `lo`.
__device__ __forceinline__ u32 action_position(const Work& w, u32 a, u32 lo) {
  return w.position[w.row[a]] + (w.inserts[a] - w.inserts[lo]) - (w.removes[a] - w.removes[lo]);
}

// With `total` slots spread evenly over those of the 2^layer segments from rank `first` on that are
// there, segment k begins at slot share(k).
__device__ __forceinline__ u64 share(const Store& s, u32 first, u64 k, u64 total, int layer) {
  if (s.parts == 4) return (k * total) >> layer;
  u64 before = there_before(s, first);
  return (there_before(s, first + k) - before) * total /
         (there_before(s, first + (1ull << layer)) - before);
}

// The segment that slot `n` of `total` belongs to: the last one there that begins at `n` or before.
__device__ __forceinline__ u64 segment_of(const Store& s, u32 first, u64 n, u64 total, int layer) {
  if (s.parts == 4) return ((((n + 1) << layer) - 1) / total);
  u64 before = there_before(s, first), there = there_before(s, first + (1ull << layer)) - before;
  return rank_of_number(s, before + ((n + 1) * there - 1) / total) - first;
}

// For the history: the keys that a batch inserts or removes, and which of the two happened. Null
// where no history is kept.
__device__ __forceinline__ void write_changes(const Work& w, const u64* keys, u64* changed,
                                              u8* inserted) {
  if (!changed) return;
  for (u64 a = thread_number<THREADS>(); a < w.report[ACTIONS]; a += thread_count<THREADS>()) {
    u32 row = w.row[a];
    if (w.action[row] == WRITE) continue;
    u32 to = w.inserts[a] + w.removes[a];
    changed[to] = keys[row];
    inserted[to] = w.action[row] == INSERT;
  }
}
