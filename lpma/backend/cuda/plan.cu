// Which windows to rebalance: the strategies of lpma/rebalance, for all leaves at once.
//
// The paper drills or climbs a layer a round. Here no leaf waits for another: whether a window
// fits depends on its count and on the sums over the batch alone, so first every window with a
// touched leaf in it is judged, once, and then every leaf finds its own: bottom-up the first
// above it that fits, top-down the topmost with a half that does not. lpma/rebalance is the
// oracle: tests compare the windows.
//
// A window is judged by its first touched leaf. Up to layer UPPER that leaf's thread climbs,
// the end of each window being near; above, windows are few, and their sums are added up a
// subtree a block.
//
// Judging writes the windows' counts as they will be after the batch (and `withdraw_batch`
// takes that back, where the batch is not carried out after all). A window's mark lives in
// `stamps`, valid for one plan only, so that nothing needs clearing.
#include "lpma/backend/cuda/judge.cuh"

__device__ __forceinline__ bool is_marked(const Work& w, const Bounds& k, u32 window, u32 mark) {
  return w.stamps[window] == stamp_of(k, mark);
}

__device__ __forceinline__ int layer_bottom_up(const Store& s, const Work& w, const Bounds& k,
                                               u32 leaf) {
  int layer = 0;
  while (layer < s.m && is_marked(w, k, leaf >> layer, BAD)) ++layer;
  return layer;
}

__device__ __forceinline__ int layer_top_down(const Store& s, const Work& w, const Bounds& k,
                                              u32 leaf) {
  int topmost = 0;
  u32 bad = stamp_of(k, BAD);
#pragma unroll 4
  for (int layer = 1; layer <= s.m; ++layer) {  // no early end: the reads do not wait in line
    u32 half = leaf >> (layer - 1);
    uint2 halves = *(const uint2*)&w.stamps[half & ~1u];
    if (halves.x == bad || halves.y == bad) topmost = layer;
  }
  return topmost;
}

// A block's share of the plan's figures: windows of each layer, and the edges they hold.
struct Figures {
  u32 windows[LEVELS];
  u64 held[LEVELS];
};

__device__ void add_figures(const Work& w, const Figures& sum) {
  __syncthreads();
  u32 layer = threadIdx.x;
  if (layer >= LEVELS || !sum.windows[layer]) return;
  add_to(w, WINDOWS_BY_LAYER + layer, sum.windows[layer]);
  add_to(w, HELD_BY_LAYER + layer, sum.held[layer]);
  if (layer) add_to(w, HELD_ABOVE, sum.held[layer]);
}

// Put a window on the list at place i.
__device__ void list_window(const Store& s, const Work& w, const Bounds& k, u64 i, u32 window,
                            int layer, u32 touched, Figures& sum) {
  u32 rank = (window << layer) - (1u << s.m);
  u32 first = lower_bound(w.touched, 0u, touched, rank);
  w.window[i] = window;
  w.window_first[i] = first;
  w.window_last[i] = lower_bound(w.touched, first, touched, rank + (1u << layer));
  u64 held = s.counts[window];
  bool large = (u64(SEGMENT) << layer) > k.block_slots;
  if (large) {
    w.window_offset[i] = atomicAdd((u64*)&w.report[LARGE_SLOTS], held);
    w.large[atomicAdd((u64*)&w.report[LARGE_WINDOWS], 1ull)] = i;
  }
  atomicAdd(&sum.windows[layer], 1u);
  atomicAdd(&sum.held[layer], held);
}

// Places on the list for the lanes that ask: one word to the report for all.
__device__ __forceinline__ u64 place_on_list(const Work& w, bool asks) {
  u32 asking = __ballot_sync(ALL_LANES, asks);
  u64 first = 0;
  if (asking && lane_id() == 0) first = atomicAdd((u64*)&w.report[WINDOWS], (u64)__popc(asking));
  first = __shfl_sync(ALL_LANES, first, 0);
  return first + lanes_before(asking);
}

// Segments that a later round rebalances again: each window counts for the next one around it.
__device__ u32 rebalanced_again(const Store& s, const Work& w, const Bounds& k, u32 window,
                                int layer) {
  for (u32 around = window >> 1; around; around >>= 1)
    if (is_marked(w, k, around, LISTED)) return 1u << layer;
  return 0;
}

__device__ __forceinline__ bool moves(const Work& w, const Bounds& k, u32 t) {
  if (k.settled) return false;
  return w.leaf_inserts[t + 1] != w.leaf_inserts[t] || w.leaf_removes[t + 1] != w.leaf_removes[t];
}

__device__ void choose(const Store& s, const Work& w, const Bounds& k) {
  __shared__ Figures sum;
  if (threadIdx.x < LEVELS) sum.windows[threadIdx.x] = sum.held[threadIdx.x] = 0;
  __syncthreads();
  u32 touched = w.report[TOUCHED], listed = stamp_of(k, LISTED), leaves = 0;
  u64 held = 0;
  for (u64 t = thread_number<THREADS>(); t - lane_id() < touched; t += thread_count<THREADS>()) {
    int layer = 0;
    u32 window = 0;
    if (t < touched) {
      window = leaf_window(s, w.touched[t]);
      layer = k.top_down ? layer_top_down(s, w, k, window) : layer_bottom_up(s, w, k, window);
      window >>= layer;
      w.layer[t] = layer;
      if (!layer && moves(w, k, t)) {
        ++leaves;
        held += s.counts[window];
      }
    }
    bool first = layer && atomicExch(&w.stamps[window], listed) != listed;  // whoever comes first
    u64 i = place_on_list(w, first);
    if (first) list_window(s, w, k, i, window, layer, touched, sum);
  }
  leaves = warp_sum(leaves);
  held = warp_sum(held);
  if (lane_id() == 0 && leaves) {
    atomicAdd(&sum.windows[0], leaves);
    atomicAdd(&sum.held[0], held);
  }
  add_figures(w, sum);
}

__device__ void count_redundant(const Store& s, const Work& w, const Bounds& k) {
  u32 touched = w.report[TOUCHED], again = 0;
  for (u32 t = thread_number<THREADS>(); t < touched; t += thread_count<THREADS>())
    if (w.layer[t] == 0 && moves(w, k, t))
      again += rebalanced_again(s, w, k, leaf_window(s, w.touched[t]), 0);
  for (u32 i = thread_number<THREADS>(); i < w.report[WINDOWS]; i += thread_count<THREADS>()) {
    int layer = s.m - (31 - __clz(w.window[i]));
    again += rebalanced_again(s, w, k, w.window[i], layer);
  }
  again = warp_sum(again);
  if (lane_id() == 0 && again) add_to(w, REDUNDANT, again);
}

// Plan a located batch.
extern "C" __global__ void __launch_bounds__(THREADS) plan_batch(const __grid_constant__ Store s, const __grid_constant__ Work w,
               const __grid_constant__ Bounds k) {
  extern __shared__ char shared[];
  if (is_bad(w)) return;
  judge_all(s, w, k, shared);
  grid_sync();
  choose(s, w, k);
  if (k.top_down) return;
  grid_sync();
  if (w.report[WINDOWS]) count_redundant(s, w, k);
}

// Take the counts back to what they were before plan_batch.
extern "C" __global__ void __launch_bounds__(THREADS) withdraw_batch(const __grid_constant__ Store s, const __grid_constant__ Work w,
                   const __grid_constant__ Bounds k) {
  extern __shared__ char shared[];
  if (!is_bad(w)) judge_all(s, w, k, shared);
}

// The store grew by `levels` since the batch was located: rank i is i << levels now.
extern "C" __global__ void __launch_bounds__(THREADS)
    shift_ranks(const __grid_constant__ Work w, int levels) {
  for (u64 i = thread_number<THREADS>(); i < w.report[TOUCHED]; i += thread_count<THREADS>())
    w.touched[i] <<= levels;
  for (u64 i = thread_number<THREADS>(); i < w.report[ACTIONS]; i += thread_count<THREADS>())
    w.rank[w.row[i]] <<= levels;
}
