// The outcome of each run of a batch, as one action.
#pragma once
#include "lpma/backend/cuda/kernels/runs.cuh"
#include "lpma/cuda/grid.cuh"

__device__ __forceinline__ State stored_state(const Store& s, u32 rank, u32 position) {
  return {true, weight_at(s, segment_at(s, rank), position), STORED};
}

// Store the outcome of a run as the action of its first row.
__device__ __forceinline__ void note(const Work& w, i64 row, bool found, State after) {
  u8 action = after.present ? (found ? WRITE : INSERT) : (found ? REMOVE : SKIP);
  w.weight[row] = after.weight;
  if (action == WRITE && after.time == STORED) action = SKIP;  // nothing was done to it
  w.time_place[row] = after.time;
  w.action[row] = action;
}

__device__ void fold_long_runs(const Store& s, const Batch& b, const Work& w, const u64* keys,
                               const u32* places, i64 n, Counts& counts) {
  for (i64 i = blockIdx.x; i < w.report[LONG_RUNS]; i += gridDim.x) {
    i64 row = w.long_run[i];
    bool found = w.action[row] == WRITE;
    State state = {false, Weight(0), STORED};
    i64 stored = 0;
    if (found) {
      state = stored_state(s, w.rank[row], w.position[row]);
      stored = time_at(s, segment_at(s, w.rank[row]), w.position[row]);
    }
    i64 end = run_end(keys, row, n);
    Run run = run_of(counts, keys[row], state, stored);
    State after = fold_by_block(b, places, row, end, run);
    if (threadIdx.x == THREADS - 1) note(w, row, found, after);
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
