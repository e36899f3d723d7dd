// What the runs of a batch come to, as a list of actions.
//
// Locating and compaction share it: locating folds runs onto the stored edges, compaction folds the
// versions of a mixed batch onto them.
#pragma once
#include "lpma/backend/cuda/runs.cuh"
#include "lpma/backend/cuda/sums.cuh"

__device__ __forceinline__ State stored_state(const Store& s, u32 rank, u32 position, bool late) {
  Slot at = segment_at(s, rank);
  return {true, weight_at(s, at, position), late ? STORED : time_at(s, at, position)};
}

// Note what a run comes to, as the action of its first row.
template <bool LATE>
__device__ __forceinline__ void note(const Work& w, i64 row, bool found, State after) {
  u8 action = after.present ? (found ? WRITE : INSERT) : (found ? REMOVE : SKIP);
  w.weight[row] = after.weight;
  if (LATE) {
    if (action == WRITE && after.time == STORED) action = SKIP;  // nothing was done to it
    w.time_place[row] = after.time;
  } else {
    w.time[row] = after.time;
  }
  w.action[row] = action;
}

template <bool LATE>
__device__ void fold_long_runs(const Store& s, const Batch& b, const Work& w, const u64* keys,
                               const u32* places, i64 n, Counts& counts) {
  for (i64 i = blockIdx.x; i < w.report[LONG_RUNS]; i += gridDim.x) {
    i64 row = w.long_run[i];
    bool found = w.action[row] == WRITE;
    State state = {false, Weight(0), STORED};
    i64 stored = 0;
    if (found) {
      state = stored_state(s, w.rank[row], w.position[row], LATE);
      stored = time_at(s, segment_at(s, w.rank[row]), w.position[row]);
    }
    i64 end = run_end(keys, row, n);
    Run run = run_of(counts, keys[row], state, stored);
    State after = fold_by_block<LATE>(b, places, row, end, run);
    if (threadIdx.x == THREADS - 1) note<LATE>(w, row, found, after);
  }
}

// List the actions, each with the insertions and removals before it.
__device__ void list_actions(const Work& w, i64 n) {
  auto counts = [&](i64 row) {
    u8 action = w.action[row];
    return Sums{action != SKIP, action == INSERT, action == REMOVE};
  };
  auto put = [&](i64 row, Sums own, Sums before) {
    if (!own.a) return;
    w.row[before.a] = row;
    w.inserts[before.a] = before.b;
    w.removes[before.a] = before.c;
  };
  Sums total = scan_grid(n, w.of_block, counts, put);
  if (thread_number<THREADS>() == 0) {
    w.inserts[total.a] = total.b;
    w.removes[total.a] = total.c;
    w.report[ACTIONS] = total.a;
    w.report[INSERTED] = total.b;
    w.report[DELETED] = total.c;
  }
}

// How the actions change the numbers of markers and loops, and the largest vertex.
struct Tally {
  i64 markers, loops, largest;
};

__device__ __forceinline__ void add_action(Tally& tally, u8 action, u64 key) {
  if (action == SKIP || action == WRITE) return;
  int delta = action == INSERT ? 1 : -1;
  u32 src = key_src(key), dst = is_marker(key) ? src : key_dst(key);
  if (is_marker(key))
    tally.markers += delta;
  else if (src == dst)
    tally.loops += delta;
  if (action == INSERT) tally.largest = max(tally.largest, i64(max(src, dst)) + 1);
}

// Add what the threads of a warp have found to the report.
__device__ __forceinline__ void report_tally(const Work& w, Tally tally) {
  __syncwarp();
  i64 markers = warp_sum(tally.markers), loops = warp_sum(tally.loops);
  i64 largest = warp_max(tally.largest);
  if (lane_id()) return;
  if (markers) add_to(w, MARKERS, markers);
  if (loops) add_to(w, LOOPS, loops);
  if (largest) atomicMax(&w.report[LARGEST], largest);
}
