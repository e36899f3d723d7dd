// Dropping the last level: pairs of segments merge, and what exceeds a segment rolls up.
//
// Idea: a window of the smaller store is a window of the larger one, a layer higher there, so its
// count is known before anything moves. As in lpma/backend/numba/rebalance/top_down.py, a window is
// spread evenly where one of its halves would not fit; here every segment finds the topmost such
// window by itself. A warp merges a pair that fits: it appends the slots of the right segment to
// those of the left.
//
// Requires: a cooperative launch.
#include "lpma/backend/cuda/kernels/move.cuh"
#include "lpma/cuda/grid.cuh"

struct Shrinking {
  const i64* most;  // i64[8 (m+1)]: the upper bounds of the smaller store, which is whole
  u32* window;      // u32[2^m]: the windows to spread, of the smaller store
  u64* offset;      // u64[2^m]: where the slots of each lie in the scratch
  i64* report;      // i64[2 + LEVELS]: windows, scratch slots, windows rebalanced by layer
};

__device__ __forceinline__ int topmost_overfull(const Store& to, const i64* most, u32 rank) {
  int topmost = 0;
  for (int layer = 1; layer <= to.m; ++layer) {
    u32 left = (leaf_window(to, rank) >> layer) * 2;
    if (max(to.counts[left], to.counts[left + 1]) > most[bound_of(layer - 1, left)])
      topmost = layer;
  }
  return topmost;
}

__device__ void append_right(const Store& from, const Shrinking& shrinking, u32 rank) {
  u32 held = slots_in(from, 2 * rank), more = slots_in(from, 2 * rank + 1);
  Slot at = segment_at(from, 2 * rank), right = segment_at(from, 2 * rank + 1);
  for (u32 i = lane_id(); i < more; i += 32)
    set_content(from, at, held + i, content_at(from, right, i));
  if (more && lane_id() == 0) atomicAdd((u64*)&shrinking.report[2], 1ull);
}

__device__ void list_overfull(const Store& to, const Shrinking& shrinking, u32 window, int layer) {
  u64 i = atomicAdd((u64*)&shrinking.report[0], 1ull);
  shrinking.window[i] = window;
  shrinking.offset[i] = atomicAdd((u64*)&shrinking.report[1], (u64)to.counts[window]);
  atomicAdd((u64*)&shrinking.report[2 + layer], 1ull);
}

// Empty the last level of `from` into `to`, which shares the other levels and the tree.
extern "C" __global__ void __launch_bounds__(THREADS)
    shrink(const __grid_constant__ Store from, const __grid_constant__ Store to,
           const __grid_constant__ Shrinking shrinking, const __grid_constant__ Columns scratch) {
  u64 warp = warp_number<THREADS>(), warps = warp_count<THREADS>();
  for (u64 rank = warp; rank < 1ull << to.m; rank += warps) {
    int layer = topmost_overfull(to, shrinking.most, rank);
    u32 window = leaf_window(to, rank) >> layer;
    if (layer == 0)
      append_right(from, shrinking, rank);
    else if (lane_id() == 0 && rank == (window << layer) - (1u << to.m))
      list_overfull(to, shrinking, window, layer);
  }
  grid_sync();
  u64 windows = shrinking.report[0];
  for (u64 i = 0; i < windows; ++i) {
    int layer = from.m - (31 - __clz(shrinking.window[i]));
    u32 first = (shrinking.window[i] << layer) - (1u << from.m);
    for (u64 j = warp; j < 1ull << layer; j += warps) {
      u32 rank = first + u32(j), held = slots_in(from, rank);
      u64 base = shrinking.offset[i] + base_by_warp(from, rank, layer);
      for (u32 p = lane_id(); p < held; p += 32)
        put_content(scratch, base + p, content_at(from, segment_at(from, rank), p), true);
    }
  }
  if (windows) grid_sync();
  for (u64 i = 0; i < windows; ++i) {
    u32 window = shrinking.window[i];
    int layer = to.m - (31 - __clz(window));
    u32 first = (window << layer) - (1u << to.m);
    u64 total = to.counts[window];
    for (u64 n = thread_number<THREADS>(); n < total; n += thread_count<THREADS>())
      spread_slot(to, first, layer, total, n, content_of(scratch, shrinking.offset[i] + n));
    spread_counts(to, window, layer, total, thread_number<THREADS>(), thread_count<THREADS>());
    if (total == 0)
      close_empty(to, first, layer, thread_number<THREADS>(), thread_count<THREADS>());
  }
}
