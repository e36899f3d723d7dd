// A batch on its way through the update kernels: sort, locate, plan, move.
//
// Rows are the batch's key operations by rising key, arrival order within a key. Locating folds
// each run of one key onto its first row (or, inside a mixed batch, leaves every row a version).
// Rows that do something are *actions*, listed in order; the actions of one segment make it a
// *touched leaf*. Sums of insertions and deletions over the actions before each give the net
// change of any range of leaves as a difference, and the place of any slot after the batch in
// closed form: that is what lets every slot and every row move by itself.
#pragma once
#include "lpma/backend/cuda/fold.cuh"
#include "lpma/cuda/lanes.cuh"

enum Action { SKIP, INSERT, WRITE, REMOVE };

constexpr int DIGITS = 256;  // of the radix sort

// What the host reads back, and what kernels tell later ones; i64 words. See report.py.
enum Report {
  SRC_BITS,     // or of all sources; of all targets
  DST_BITS,
  BAD_KIND,     // rows that fail validation
  BAD_VERTEX,
  BAD_WEIGHT,
  BAD_HOPS,
  ROWS,         // key operations
  IN_SECOND,    // 1: sorting ended in the second pair of columns
  LONG_RUNS,
  ACTIONS,
  TOUCHED,
  INSERTED,
  DELETED,
  MARKERS,      // net change of vertex markers, of loops
  LOOPS,
  LARGEST,      // 1 + the largest vertex id of an inserted slot
  WINDOWS,      // listed windows, all above the leaves
  HELD_ABOVE,   // edges that they hold
  LARGE_SLOTS,  // scratch that those too large for a block need
  REDUNDANT,
  COMPACTED,    // slots that compaction removed
  CROWDED,      // leaves on the list of a global merge
  LARGE_WINDOWS,
  UNCHANGED,    // operations that change nothing, see runs.cuh: Counts
  WINDOWS_BY_LAYER = UNCHANGED + 2 * REASONS,
  HELD_BY_LAYER = WINDOWS_BY_LAYER + LEVELS,
  REPORT_WORDS = HELD_BY_LAYER + LEVELS
};

// Three counts summed at once: a batch's scans come in threes.
struct Sums {
  u32 a, b, c;
};

// The buffers of a batch; allocated for `room` rows.
struct Work {
  u64* key[2];  // rows; the sort goes from one to the other
  u32* place[2];
  u32* rank;      // of the segment a row belongs to
  u16* position;  // there: where to insert before, or what to write or remove
  u8* action;
  Weight* weight;   // the key's weight after the batch
  u32* time_place;  // the row of the batch whose time it takes
  i64* time;        // the same as a time: of what compaction leaves
  u32* long_run;   // first rows of long runs
  u32* last_rank;  // of the last slot of a run of versions
  u32* row;       // of each action; and the insertions and removals before it (one entry more)
  u32* inserts;
  u32* removes;
  u32* touched;  // rank of each touched leaf
  u32* begin;    // its first action (one entry more); and the sums before that
  u32* leaf_inserts;
  u32* leaf_removes;
  u8* layer;          // of the window that a touched leaf moves with
  u32* window;        // listed windows, with their touched leaves first … last - 1
  u32* window_first;
  u32* window_last;
  u64* window_offset;  // in the scratch
  u32* large;          // which of them are too large for a block
  u32* stamps;         // u32[2^(m+1)]: see plan.cu
  int2* upper;         // per window of UPPER layers up: (net change, removals); 0 when at rest
  u32* histogram;      // of sorting: u32[8 passes][blocks][DIGITS]
  Sums* of_block;      // Sums[blocks], for scans over the grid
  i64* report;
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

__device__ __forceinline__ bool is_bad(const Work& w) {
  return w.report[BAD_KIND] | w.report[BAD_VERTEX] | w.report[BAD_WEIGHT] | w.report[BAD_HOPS];
}

// Net change of touched leaves first … last - 1.
__device__ __forceinline__ i64 net_change(const Work& w, u32 first, u32 last) {
  return i64(w.leaf_inserts[last] - w.leaf_inserts[first]) -
         i64(w.leaf_removes[last] - w.leaf_removes[first]);
}

// Where a stored slot of a touched segment goes: how many places up or down, whether it stays
// at all, whether its value does.
struct Shift {
  int by;
  bool removed, overwritten;
};

// For the slot at `position` of a segment whose actions are lo … hi - 1: the actions before it
// are those up to the first that stands behind it.
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

// Where action `a` of a segment whose actions begin at `lo` puts its slot, from the segment's
// first on.
__device__ __forceinline__ u32 action_position(const Work& w, u32 a, u32 lo) {
  return w.position[w.row[a]] + (w.inserts[a] - w.inserts[lo]) - (w.removes[a] - w.removes[lo]);
}

// An even spread of `total` slots over 2^layer segments: segment k begins at share(k).
__device__ __forceinline__ u64 share(u64 k, u64 total, int layer) { return (k * total) >> layer; }

// The segment that slot `n` of the `total` goes to.
__device__ __forceinline__ u64 segment_of(u64 n, u64 total, int layer) {
  return ((((n + 1) << layer) - 1) / total);
}

// For the history: the keys that a batch inserts or removes, and which it was. Null: nobody asks.
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
