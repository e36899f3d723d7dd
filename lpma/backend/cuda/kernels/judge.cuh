// Judging windows: how many slots each will hold after the batch, and whether that fits.
//
// Idea: every touched leaf adds its change to the counts of all windows above it. Leaves are in
// order, so the lanes of a warp first add up what goes to the same window, and a window gets one
// addition from each warp, or from each block where it is one of the topmost: additions to one
// address queue up. From then on the counts are those after the batch. Only windows that a leaf comes
// by are judged (choose.cuh), and nearly all of them fit by their count. A window that breaks a bound
// still fits if the batch does not move it further past that bound: only then the changes of its
// leaves are summed up.
//
// With sign -1 the changes are taken back.
#pragma once
#include "lpma/backend/cuda/kernels/work.cuh"
#include "lpma/cuda/grid.cuh"

struct Bounds {
  const i64* most;   // i64[8 (m+1)] by layer and the window modulo 8: slots a window may hold
  const i64* least;  // and must hold
  int sign;          // 1, or -1 to roll back
  u32 plan;          // the number of this plan, which stamps the windows that it lists
  int top_down;
  int block_slots;  // the largest window that a block moves by itself
};

__device__ __forceinline__ int bits_in(u32 word) { return 32 - __clz(word); }

constexpr u32 TOP_WINDOWS = THREADS;  // those with a number below it

// Add to a window's count; `top` has what a block adds to the windows that all blocks add to.
__device__ __forceinline__ void add_to_window(const Store& s, u32* top, u32 window, int sum) {
  atomicAdd(window < TOP_WINDOWS ? &top[window] : &s.counts[window], u32(sum));
}

// Add what the leaves of a warp change, one a lane, to the counts above them. `leaf` is 0, and
// `change` too, for lanes without one: the last ones.
__device__ __forceinline__ void add_up(const Store& s, u32* top, u32 leaf, int change) {
  u32 lane = lane_id(), upto_own = ALL_LANES >> (31 - lane);
  u32 next = __shfl_down_sync(ALL_LANES, leaf, 1), last = __shfl_up_sync(ALL_LANES, leaf, 1);
  // The layers below which the lane is the last of its window's, and those where it is the first.
  int ends = lane == 31 ? 32 : bits_in(leaf ^ next), begins = lane ? bits_in(leaf ^ last) : 32;
  int upto = warp_inclusive(change);
  if (change) add_to_window(s, top, leaf, change);
  for (int layer = 1; layer <= s.m; ++layer) {
    u32 first = __ballot_sync(ALL_LANES, begins > layer);
    if (first == 1) {  // from here on all lanes share the window: a lane a layer
      int total = __shfl_sync(ALL_LANES, upto, 31);
      u32 window = __shfl_sync(ALL_LANES, leaf, 0) >> layer >> lane;
      if (window && total) add_to_window(s, top, window, total);
      return;
    }
    int head = 31 - __clz(first & upto_own);
    int before = __shfl_sync(ALL_LANES, upto, max(head - 1, 0));
    int sum = head ? upto - before : upto;
    if (leaf && ends > layer && sum) add_to_window(s, top, leaf >> layer, sum);
  }
}

// Bring the counts of all windows up to date, by the whole grid.
__device__ void add_changes(const Store& s, const Work& w, int sign) {
  __shared__ u32 top[TOP_WINDOWS];
  u64 touched = w.report[TOUCHED];
  top[threadIdx.x] = 0;
  __syncthreads();
  for (u64 t = thread_number<THREADS>(); t - lane_id() < touched; t += thread_count<THREADS>()) {
    bool is = t < touched;
    u32 leaf = is ? leaf_window(s, w.touched[t]) : 0;
    add_up(s, top, leaf, is ? sign * int(net_change(w, t, t + 1)) : 0);
  }
  __syncthreads();
  if (top[threadIdx.x]) atomicAdd(&s.counts[threadIdx.x], top[threadIdx.x]);
}

// The slots that windows may and must hold, as in Bounds, in shared memory.
struct Limits {
  u32 most[8 * LEVELS], least[8 * LEVELS];
  bool removes;  // whether the batch removes any slot
};

__device__ __forceinline__ void load_limits(const Store& s, const Work& w, const Bounds& bounds,
                                            Limits& limits) {
  for (u32 i = threadIdx.x; i < 8 * (s.m + 1); i += THREADS) {
    limits.most[i] = bounds.most[i];
    limits.least[i] = bounds.least[i];
  }
  if (threadIdx.x == THREADS - 1) {
    u32 touched = w.report[TOUCHED];
    limits.removes = w.leaf_removes[touched] != w.leaf_removes[0];
  }
  __syncthreads();
}

__device__ __forceinline__ bool is_suspect(const Limits& limits, u32 held, u32 window, int layer) {
  u32 entry = bound_of(layer, window);
  return held > limits.most[entry] || (limits.removes && held < limits.least[entry]);
}

// Whether a suspect window, one of touched leaf t or beside one, will not fit.
__device__ bool is_unfit(const Store& s, const Work& w, const Limits& limits, u32 window, int layer,
                         u32 t, u32 touched) {
  u32 held = s.counts[window], leaves = 1u << layer, rank = (window << layer) - (1u << s.m);
  u32 first = lower_bound(w.touched, t - min(t, 2 * leaves), min(touched, t + 2 * leaves), rank);
  u32 last = lower_bound(w.touched, first, min(touched, first + leaves), rank + leaves);
  bool removes = w.leaf_removes[last] != w.leaf_removes[first];
  u32 entry = bound_of(layer, window);
  return (held > limits.most[entry] && net_change(w, first, last) > 0) ||
         (held < limits.least[entry] && removes);
}
