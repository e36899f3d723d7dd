// Dropping the last level: pairs of segments merge, what exceeds a segment rolls up.
//
// A window of the smaller store is the same window of the larger one a layer up, so its count is
// known before anything moves. As in lpma/rebalance/top_down.py a window is spread evenly where
// one of its halves would not fit; here every segment looks for the topmost such window by
// itself. A pair that fits is a warp's: the right segment's slots are appended to the left's.
#include "lpma/backend/cuda/move.cuh"
#include "lpma/cuda/grid.cuh"

struct Shrinking {
  const i64* most;  // i64[m+1]: bounds of the smaller store
  u32* window;      // u32[2^m]: the windows to spread, of the smaller store
  u64* offset;      // u64[2^m]: where their slots lie in the scratch
  i64* report;      // i64[2 + LEVELS]: windows, scratch slots, windows rebalanced by layer
};

__device__ __forceinline__ int topmost_overfull(const Store& to, const i64* most, u32 rank) {
  int topmost = 0;
  for (int layer = 1; layer <= to.m; ++layer) {
    u32 left = (leaf_window(to, rank) >> layer) * 2;
    if (max(to.counts[left], to.counts[left + 1]) > most[layer - 1]) topmost = layer;
  }
  return topmost;
}

__device__ void append_right(const Store& v, const Shrinking& k, u32 rank) {
  u32 held = slots_in(v, 2 * rank), more = slots_in(v, 2 * rank + 1);
  Slot at = segment_at(v, 2 * rank), right = segment_at(v, 2 * rank + 1);
  for (u32 i = lane_id(); i < more; i += 32) set_content(v, at, held + i, content_at(v, right, i));
  if (more && lane_id() == 0) atomicAdd((u64*)&k.report[2], 1ull);
}

__device__ void list_overfull(const Store& to, const Shrinking& k, u32 window, int layer) {
  u64 i = atomicAdd((u64*)&k.report[0], 1ull);
  k.window[i] = window;
  k.offset[i] = atomicAdd((u64*)&k.report[1], (u64)to.counts[window]);
  atomicAdd((u64*)&k.report[2 + layer], 1ull);
}

// Empty the last level of `v` into `to`, which shares the others and the tree.
extern "C" __global__ void __launch_bounds__(THREADS)
    shrink(const __grid_constant__ Store v, const __grid_constant__ Store to,
           const __grid_constant__ Shrinking k, const __grid_constant__ Columns scratch) {
  u64 warp = warp_number<THREADS>(), warps = warp_count<THREADS>();
  for (u64 rank = warp; rank < 1ull << to.m; rank += warps) {
    int layer = topmost_overfull(to, k.most, rank);
    u32 window = leaf_window(to, rank) >> layer;
    if (layer == 0)
      append_right(v, k, rank);
    else if (lane_id() == 0 && rank == (window << layer) - (1u << to.m))
      list_overfull(to, k, window, layer);
  }
  grid_sync();
  u64 windows = k.report[0];
  for (u64 i = 0; i < windows; ++i) {
    int layer = v.m - (31 - __clz(k.window[i]));
    u32 first = (k.window[i] << layer) - (1u << v.m);
    for (u64 j = warp; j < 1ull << layer; j += warps) {
      u32 rank = first + u32(j), held = slots_in(v, rank);
      u64 base = k.offset[i] + base_by_warp(v, rank, layer);
      for (u32 p = lane_id(); p < held; p += 32)
        put_content(scratch, base + p, content_at(v, segment_at(v, rank), p), true);
    }
  }
  if (windows) grid_sync();
  for (u64 i = 0; i < windows; ++i) {
    u32 window = k.window[i];
    int layer = to.m - (31 - __clz(window));
    u32 first = (window << layer) - (1u << to.m);
    u64 total = to.counts[window];
    for (u64 n = thread_number<THREADS>(); n < total; n += thread_count<THREADS>())
      spread_slot(to, first, layer, total, n, content_of(scratch, k.offset[i] + n));
    spread_counts(to, window, layer, total, thread_number<THREADS>(), thread_count<THREADS>());
    if (total == 0) close_empty(to, first, layer, thread_number<THREADS>(), thread_count<THREADS>());
  }
}
