// Versions become edges again: the compaction that ends a mixed batch.
//
// Source: the paper, Section VI-A. As on the CPU (lpma/backend/numba/compact.py), the versions of
// every key are folded onto its stored edge; what remains goes to the last slot of the run, and the
// other slots of the run go. A thread folds a run and finds the segments that the run lies in; a
// block does where the run is long. A warp then closes the gaps of a segment. These segments become
// the touched leaves of a plan that has no actions and only mends windows that fell below their
// lower bounds (`settled` in plan.cu and windows.cu).
//
// Requires: the sorted rows of the versions, still in `work`; report words from LONG_RUNS on are 0.
#include "lpma/backend/cuda/actions.cuh"

__device__ void fold_versions(const Store& s, const Batch& b, const Work& w, const u64* keys,
                              const u32* places, i64 row, i64 n, Counts& counts) {
  u64 key = keys[row];
  w.action[row] = SKIP;
  if (row && keys[row - 1] == key) return;
  Found at = first_at_or_after(s, key);
  Slot slot = segment_at(s, at.rank);
  bool found = seq_at(s, slot, at.position) == 0;
  i64 end = run_end(keys, row, n);
  w.rank[row] = at.rank;
  w.position[row] = at.position;
  w.last_rank[row] = slot_number(s, at.before + (end - row) + found - 1).rank;
  if (end - row > LONG_RUN) {
    w.action[row] = found ? WRITE : INSERT;
    w.long_run[atomicAdd((u64*)&w.report[LONG_RUNS], 1ull)] = row;
    return;
  }
  State state = {false, Weight(0), 0};
  if (found) state = stored_state(s, at.rank, at.position, false);
  Run run = run_of(counts, key, state, state.time);
  note<false>(w, row, found, fold<false>(b, places, row, end, run));
}

// The segments of a run in which no earlier run lies, first … last; none where first > last.
struct Span {
  u32 first, last;
};

__device__ __forceinline__ Span span_of(const Work& w, const u64* keys, i64 row) {
  if (row && keys[row - 1] == keys[row]) return {1, 0};
  u32 first = w.rank[row];
  if (row) {
    u32 before = w.last_rank[lower_bound(keys, 0u, u32(row), keys[row - 1])];
    if (before >= first) first = before + 1;
  }
  return {first, w.last_rank[row]};
}

// List the segments that hold versions, as touched leaves without actions.
__device__ void list_versioned(const Store& s, const Work& w, const u64* keys, i64 n) {
  struct Spanning : Sums {
    Span span;
  };
  auto read = [&](i64 row) {
    Spanning run = {{0, 0, 0}, span_of(w, keys, row)};
    for (u32 rank = run.span.first; rank <= run.span.last; ++rank) run.a += slots_in(s, rank) != 0;
    return run;
  };
  auto put = [&](i64, Spanning run, Sums before) {
    for (u32 rank = run.span.first; rank <= run.span.last; ++rank)
      if (slots_in(s, rank)) w.touched[before.a++] = rank;
  };
  Sums total = scan_grid(n, w.of_block, read, put);
  if (thread_number<THREADS>() == 0) w.report[TOUCHED] = total.a;
}

// Close the gaps of a segment, by a warp. Returns how many slots go.
__device__ u32 compact_segment(const Store& s, const Work& w, const u64* keys, u32 n, u32 rank) {
  u32 held = slots_in(s, rank), kept = 0;
  Slot at = segment_at(s, rank);
  for (u32 first = 0; first < held; first += 32) {
    u32 j = first + lane_id();
    bool keep = j < held, fresh = false;
    u64 key = 0;
    Weight weight = 0;
    i64 time = 0;
    u32 row = n;
    if (keep) {
      key = key_at(s, at, j);
      weight = weight_at(s, at, j);
      time = time_at(s, at, j);
      bool ends = j + 1 == held, last = ends || key_at(s, at, j + 1) != key;
      if (seq_at(s, at, j) || ends || !last) row = lower_bound(keys, 0u, n, key);
      if (row < n && keys[row] == key) {
        if (ends) last = w.last_rank[row] == rank;
        fresh = last && (w.action[row] == WRITE || w.action[row] == INSERT);
        keep = fresh;
      }
    }
    u32 keeping = __ballot_sync(ALL_LANES, keep);
    __syncwarp();
    if (keep) {
      u32 to = kept + lanes_before(keeping);
      s.keys[at.level][at.index + to] = key;
      set_value(s, at, to, fresh ? w.weight[row] : weight, fresh ? w.time[row] : time);
      s.seqs[at.level][at.index + to] = 0;
    }
    __syncwarp();
    kept += __popc(keeping);
  }
  return held - kept;
}

// Sum up the slots that went, so that the change of a touched leaf is a difference.
__device__ void sum_removed(const Work& w) {
  i64 n = w.report[TOUCHED];
  auto put = [&](i64 t, Sums, Sums before) {
    w.leaf_removes[t] = before.a;
    w.leaf_inserts[t] = 0;
    w.begin[t] = 0;
  };
  Sums total = scan_grid(n, w.of_block, [&](i64 t) { return Sums{w.begin[t], 0, 0}; }, put);
  if (thread_number<THREADS>() == 0) {
    put(n, {}, total);
    w.report[COMPACTED] = total.a;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    compact(const __grid_constant__ Store s, const __grid_constant__ Batch b,
            const __grid_constant__ Work w, u64* changed, u8* inserted) {
  __shared__ Counts counts;
  clear_counts(counts);
  i64 n = w.report[ROWS];
  const u64* keys = row_keys(w);
  const u32* places = row_places(w);
  for (i64 row = thread_number<THREADS>(); row < n; row += thread_count<THREADS>())
    fold_versions(s, b, w, keys, places, row, n, counts);
  grid_sync();
  if (w.report[LONG_RUNS]) {
    fold_long_runs<false>(s, b, w, keys, places, n, counts);
    grid_sync();
  }
  report_counts(w, counts);
  list_actions(w, n);
  grid_sync();
  Tally tally = {0, 0, 0};
  for (u64 a = thread_number<THREADS>(); a < w.report[ACTIONS]; a += thread_count<THREADS>())
    add_action(tally, w.action[w.row[a]], keys[w.row[a]]);
  report_tally(w, tally);
  write_changes(w, keys, changed, inserted);
  list_versioned(s, w, keys, n);
  grid_sync();
  u64 warp = warp_number<THREADS>(), warps = warp_count<THREADS>();
  for (u64 t = warp; t < w.report[TOUCHED]; t += warps) {
    u32 removed = compact_segment(s, w, keys, n, w.touched[t]);
    if (lane_id() == 0) w.begin[t] = removed;
  }
  grid_sync();
  sum_removed(w);
}
