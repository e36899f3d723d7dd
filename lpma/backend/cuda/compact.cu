// Versions become edges again: the compaction that ends a mixed batch (paper, Section VI-A).
//
// As on the CPU (backend/numba/compact.py): every key's versions are folded onto its stored edge;
// what remains goes where the run's last slot was, the other slots of the run go. A thread a run
// folds and finds which segments the run lies in, a block where the run is long; a warp a segment
// then closes the gaps. The segments become the touched leaves of a plan that moves no row, only
// mends windows that fell under their lower bounds (`settled` in plan.cu and windows.cu).
//
// Requires: the rows of the versions still sorted in `work`; report words from LONG_RUNS on 0.
#include "actions.cuh"

__device__ void fold_versions(const Store& s, const Batch& b, const Work& w, const u64* keys,
                              const u32* places, i64 row, i64 n) {
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
  note<false>(w, row, found, fold<false>(b, places, row, end, is_marker(key), state));
}

// The segments of a run that no earlier run lies in, first … last; none where first > last.
struct Span {
  u32 first, last;
};

__device__ __forceinline__ Span span_of(const Work& w, const u64* keys, i64 row) {
  if (row && keys[row - 1] == keys[row]) return {1, 0};
  u32 first = w.rank[row];
  if (row) {
    u32 before = w.last_rank[first_not_below(keys, 0u, u32(row), keys[row - 1])];
    if (before >= first) first = before + 1;
  }
  return {first, w.last_rank[row]};
}

// List the segments that hold versions as touched leaves without actions.
__device__ void list_versioned(const Store& s, const Work& w, const u64* keys, i64 n) {
  Share rows = block_share(n);
  Sums sum = {0, 0, 0}, total, grid_total;
  for (i64 row = rows.lo + threadIdx.x; row < rows.hi; row += THREADS) {
    Span span = span_of(w, keys, row);
    for (u32 rank = span.first; rank <= span.last; ++rank) sum.a += slots_in(s, rank) != 0;
  }
  block_exclusive(sum, total);
  if (threadIdx.x == 0) w.of_block[blockIdx.x] = total;
  grid_sync();
  Sums before = blocks_before(w.of_block, grid_total);
  for (i64 tile = rows.lo; tile < rows.hi; tile += THREADS) {
    i64 row = tile + threadIdx.x;
    Span span = row < rows.hi ? span_of(w, keys, row) : Span{1, 0};
    u32 here = 0;
    for (u32 rank = span.first; rank <= span.last; ++rank) here += slots_in(s, rank) != 0;
    u32 to = (before + block_exclusive({here, 0, 0}, total)).a;
    for (u32 rank = span.first; rank <= span.last; ++rank)
      if (slots_in(s, rank)) w.touched[to++] = rank;
    before = before + total;
  }
  if (thread_number() == 0) w.report[TOUCHED] = grid_total.a;
}

// Close the gaps of one segment, a warp's. Returns how many slots go.
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
      if (seq_at(s, at, j) || ends || !last) row = first_not_below(keys, 0u, n, key);
      if (row < n && keys[row] == key) {
        if (ends) last = w.last_rank[row] == rank;
        fresh = last && (w.action[row] == WRITE || w.action[row] == INSERT);
        keep = fresh;
      }
    }
    u32 keeping = __ballot_sync(ALL_LANES, keep);
    __syncwarp();
    if (keep) {
      u32 to = kept + __popc(keeping & ((1u << lane_id()) - 1));
      s.keys[at.level][at.index + to] = key;
      set_value(s, at, to, fresh ? w.weight[row] : weight, fresh ? w.time[row] : time);
      s.seqs[at.level][at.index + to] = 0;
    }
    __syncwarp();
    kept += __popc(keeping);
  }
  return held - kept;
}

// Sum up what went, so that the touched leaves' changes are differences.
__device__ void sum_removed(const Work& w) {
  i64 n = w.report[TOUCHED];
  Share share = block_share(n);
  Sums sum = {0, 0, 0}, total, grid_total;
  for (i64 t = share.lo + threadIdx.x; t < share.hi; t += THREADS) sum.a += w.begin[t];
  block_exclusive(sum, total);
  if (threadIdx.x == 0) w.of_block[blockIdx.x] = total;
  grid_sync();
  Sums before = blocks_before(w.of_block, grid_total);
  for (i64 tile = share.lo; tile < share.hi; tile += THREADS) {
    i64 t = tile + threadIdx.x;
    u32 removed = t < share.hi ? w.begin[t] : 0;
    Sums at = before + block_exclusive({removed, 0, 0}, total);
    if (t < share.hi) {
      w.leaf_removes[t] = at.a;
      w.leaf_inserts[t] = 0;
      w.begin[t] = 0;
    }
    before = before + total;
  }
  if (thread_number() == 0) {
    w.leaf_removes[n] = grid_total.a;
    w.leaf_inserts[n] = 0;
    w.begin[n] = 0;
    w.report[COMPACTED] = grid_total.a;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    compact(const __grid_constant__ Store s, const __grid_constant__ Batch b,
            const __grid_constant__ Work w, u64* changed, u8* inserted) {
  i64 n = w.report[ROWS];
  const u64* keys = row_keys(w);
  const u32* places = row_places(w);
  for (i64 row = thread_number(); row < n; row += thread_count())
    fold_versions(s, b, w, keys, places, row, n);
  grid_sync();
  if (w.report[LONG_RUNS]) {
    fold_long_runs<false>(s, b, w, keys, places, n);
    grid_sync();
  }
  list_actions(w, n);
  grid_sync();
  tally(w, keys);
  write_changes(w, keys, changed, inserted);
  list_versioned(s, w, keys, n);
  grid_sync();
  u64 warp = thread_number() / 32, warps = thread_count() / 32;
  for (u64 t = warp; t < w.report[TOUCHED]; t += warps) {
    u32 removed = compact_segment(s, w, keys, n, w.touched[t]);
    if (lane_id() == 0) w.begin[t] = removed;
  }
  grid_sync();
  sum_removed(w);
}
