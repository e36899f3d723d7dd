// The whole store at once: the global merge, the bulk load, growing and shrinking by a level.
//
// Where a batch is large against the store, every slot and every action goes straight to its
// place in fresh levels: one read and one write of each, no staging, and the old store stays as
// it is until the new one is published. A place follows from the counts of what lies to the left,
// up the tree, and from the actions before it in the segment (work.cuh).
//
// Requires: for `merge`, counts that already say what will be after the batch (plan.cu).
#include "move.cuh"

// Merge `from` with the located batch into `to`; `total` slots.
extern "C" __global__ void __launch_bounds__(THREADS)
    merge(const __grid_constant__ Store from, const __grid_constant__ Store to,
          const __grid_constant__ Work w, i64 total) {
  u64 warp = thread_number() / 32, warps = thread_count() / 32;
  u32 touched = w.report[TOUCHED];
  for (u64 rank = warp; rank < 1ull << from.m; rank += warps) {
    u32 t = first_not_below(w.touched, 0u, touched, u32(rank));
    bool changes = t < touched && w.touched[t] == rank;
    u32 held = slots_in(from, rank) - (changes ? net_change(w, t, t + 1) : 0);
    u64 base = base_by_warp(from, rank, from.m);
    Slot at = segment_at(from, rank);
    for (u32 position = lane_id(); position < held; position += 32) {
      Shift shift = {0, false, false};
      if (changes) shift = shift_of(w, w.begin[t], w.begin[t + 1], position);
      if (shift.removed || shift.overwritten) continue;  // its action writes the whole slot
      u64 n = base + position + shift.by;
      spread_slot(to, 0, to.m, total, n, content_at(from, at, position));
    }
  }
  const u64* keys = row_keys(w);
  for (u64 a = thread_number(); a < w.report[ACTIONS]; a += thread_count()) {
    u32 row = w.row[a];
    if (w.action[row] == REMOVE) continue;
    u32 rank = w.rank[row], t = first_not_below(w.touched, 0u, touched, rank);
    u64 n = base_in_window(from, rank, from.m) + action_position(w, u32(a), w.begin[t]);
    spread_slot(to, 0, to.m, total, n, content_of_row(w, keys, nullptr, row, false));
  }
  spread_counts(to, 1, to.m, total, thread_number(), thread_count());
  if (thread_number() == 0) to.counts[1] = total;
  if (total == 0) close_empty(to, 0, to.m, thread_number(), thread_count());
}

// Fill `to` with the `total` slots of whole columns, keys rising.
extern "C" __global__ void __launch_bounds__(THREADS)
    fill(const __grid_constant__ Store to, Columns from, i64 total) {
  for (u64 n = thread_number(); n < total; n += thread_count())
    spread_slot(to, 0, to.m, total, n, content_of(from, n));
  spread_counts(to, 1, to.m, total, thread_number(), thread_count());
  if (thread_number() == 0) to.counts[1] = total;
  if (total == 0) close_empty(to, 0, to.m, thread_number(), thread_count());
}

// The tree of one level more: old windows keep number and count; each old leaf's left half is its
// segment, its right half is new, empty and fenced by its successor.
extern "C" __global__ void __launch_bounds__(THREADS)
    grow_tree(const u64* old_fences, const u32* old_counts, u64* fences, u32* counts, int m) {
  u64 leaves = 1ull << (m - 1);
  for (u64 i = thread_number(); i < leaves; i += thread_count()) {
    fences[i] = old_fences[i];
    counts[i] = old_counts[i];
    counts[leaves + i] = old_counts[leaves + i];
    counts[2 * (leaves + i)] = old_counts[leaves + i];
    counts[2 * (leaves + i) + 1] = 0;
    u64 next = i + 1;
    fences[leaves + i] =
        next == leaves ? LAST_FENCE : old_fences[(leaves + next) >> (__ffsll(next))];
  }
}
