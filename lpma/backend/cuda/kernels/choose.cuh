// Which windows to rebalance: the paper's strategies, for all leaves at once.
//
// Source: the paper, Algorithms 1 and 2. lpma/backend/numba/rebalance has the same strategies, and
// tests compare the windows.
//
// Idea: the paper drills or climbs one layer a round. Whether a window fits depends only on its count
// and on sums over the batch, so every leaf finds its own window at once: bottom-up the first above
// it that fits, top-down the topmost one with a half that does not.
//
// Requires: a located batch (locate.cuh), its changes added to the counts (judge.cuh); a cooperative
// launch.
#pragma once
#include "lpma/backend/cuda/kernels/judge.cuh"

// The layer of the lowest window of touched leaf t that fits.
__device__ __forceinline__ int layer_bottom_up(const Store& s, const Work& w, const Limits& limits,
                                               u32 leaf, u32 t, u32 touched) {
  int layer = 0;
  while (layer < s.m && is_suspect(limits, s.counts[leaf >> layer], leaf >> layer, layer) &&
         is_unfit(s, w, limits, leaf >> layer, layer, t, touched))
    ++layer;
  return layer;
}

// The layer of the topmost window of touched leaf t with a half that does not fit; 0: there is none.
__device__ __forceinline__ int layer_top_down(const Store& s, const Work& w, const Limits& limits,
                                              u32 leaf, u32 t, u32 touched) {
  u64 suspects = 0;  // layers of windows with a half that may not fit
#pragma unroll 4
  for (int layer = 1; layer <= s.m; ++layer) {  // all of them, so that no read waits for another
    u32 half = (leaf >> (layer - 1)) & ~1u;
    uint2 held = *(const uint2*)&s.counts[half];
    bool is = is_suspect(limits, held.x, half, layer - 1) ||
              is_suspect(limits, held.y, half + 1, layer - 1);
    suspects |= u64(is) << layer;
  }
  while (suspects) {
    int layer = 63 - __clzll(suspects);
    u32 half = (leaf >> (layer - 1)) & ~1u;
    for (u32 i = half; i < half + 2; ++i)
      if (is_suspect(limits, s.counts[i], i, layer - 1) &&
          is_unfit(s, w, limits, i, layer - 1, t, touched))
        return layer;
    suspects ^= 1ull << layer;
  }
  return 0;
}

// A block's share of the plan's figures: the windows of each layer, and the edges they hold.
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

// Put a window at place i of the list; touched leaf t, one of `touched`, is in it.
__device__ void list_window(const Store& s, const Work& w, const Bounds& bounds, u64 i, u32 window,
                            int layer, u32 t, u32 touched, Figures& sum) {
  u32 rank = (window << layer) - (1u << s.m), leaves = 1u << layer;
  w.window[i] = window;
  w.window_first[i] = lower_bound(w.touched, t - min(t, leaves - 1), t, rank);
  w.window_last[i] = lower_bound(w.touched, t + 1, min(touched, t + leaves), rank + leaves);
  u64 held = s.counts[window];
  bool large = (u64(SEGMENT) << layer) > bounds.block_slots;
  if (large) {
    w.window_offset[i] = atomicAdd((u64*)&w.report[LARGE_SLOTS], held);
    w.large[atomicAdd((u64*)&w.report[LARGE_WINDOWS], 1ull)] = i;
  }
  atomicAdd(&sum.windows[layer], 1u);
  atomicAdd(&sum.held[layer], held);
}

// The segments of a window that a later round rebalances again.
__device__ u32 rebalanced_again(const Work& w, const Bounds& bounds, u32 window, int layer) {
  bool again = false;
#pragma unroll 4
  for (int up = 1; up < 32; ++up)  // all of them, so that no read waits for another
    again |= window >> up && w.stamps[window >> up] == bounds.plan;
  return again ? 1u << layer : 0;
}

__device__ __forceinline__ bool moves(const Work& w, const Bounds& bounds, u32 t) {
  return w.leaf_inserts[t + 1] != w.leaf_inserts[t] || w.leaf_removes[t + 1] != w.leaf_removes[t];
}

__device__ void choose(const Store& s, const Work& w, const Bounds& bounds) {
  __shared__ Figures sum;
  __shared__ Limits limits;
  if (threadIdx.x < LEVELS) sum.windows[threadIdx.x] = sum.held[threadIdx.x] = 0;
  load_limits(s, w, bounds, limits);
  u32 touched = w.report[TOUCHED], leaves = 0;
  u64 held = 0;
  for (u64 t = thread_number<THREADS>(); t - lane_id() < touched; t += thread_count<THREADS>()) {
    int layer = 0;
    u32 window = 0;
    if (t < touched) {
      window = leaf_window(s, w.touched[t]);
      layer = bounds.top_down ? layer_top_down(s, w, limits, window, u32(t), touched)
                              : layer_bottom_up(s, w, limits, window, u32(t), touched);
      window >>= layer;
      w.layer[t] = layer;
      if (!layer && moves(w, bounds, t)) {
        ++leaves;
        held += s.counts[window];
      }
    }
    // Of all leaves that find this window, the first lists it.
    bool first = layer && atomicExch(&w.stamps[window], bounds.plan) != bounds.plan;
    u64 i = place_of_lane(first, (u64*)&w.report[WINDOWS]);
    if (first) list_window(s, w, bounds, i, window, layer, u32(t), touched, sum);
  }
  leaves = warp_sum(leaves);
  held = warp_sum(held);
  if (lane_id() == 0 && leaves) {
    atomicAdd(&sum.windows[0], leaves);
    atomicAdd(&sum.held[0], held);
  }
  add_figures(w, sum);
}

__device__ void count_redundant(const Store& s, const Work& w, const Bounds& bounds) {
  u32 touched = w.report[TOUCHED], again = 0;
  for (u32 t = thread_number<THREADS>(); t < touched; t += thread_count<THREADS>())
    if (w.layer[t] == 0 && moves(w, bounds, t))
      again += rebalanced_again(w, bounds, leaf_window(s, w.touched[t]), 0);
  for (u32 i = thread_number<THREADS>(); i < w.report[WINDOWS]; i += thread_count<THREADS>()) {
    int layer = s.m - (31 - __clz(w.window[i]));
    again += rebalanced_again(w, bounds, w.window[i], layer);
  }
  again = warp_sum(again);
  if (lane_id() == 0 && again) add_to(w, REDUNDANT, again);
}
