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
#include "work.cuh"

constexpr int UPPER = 8;     // layers that a leaf's thread climbs
constexpr int SUBTREE = 10;  // layers that a block adds up at a time
constexpr u32 BAD = 1, LISTED = 2;  // low bits of a stamp; the rest is the plan's number

struct Bounds {
  const i64* most;   // i64[m+1] by layer: slots a window may hold
  const i64* least;  // and must
  int sign;          // 1, or -1 to withdraw
  u32 plan;          // number of this plan
  int top_down;
  int settled;      // the leaves' actions are done: only windows move
  int block_slots;  // the largest window that a block moves by itself
  int pad;
};

__device__ __forceinline__ u32 stamp_of(const Bounds& k, u32 mark) { return (k.plan << 2) | mark; }

// Bring a touched window's count up to date, and mark it where it will not fit.
__device__ __forceinline__ void judge(const Store& s, const Work& w, const Bounds& k, u32 window,
                                      int layer, i64 change, i64 removed) {
  i64 after = i64(s.counts[window]) + k.sign * change;
  s.counts[window] = after;
  bool over = change > 0 && after > k.most[layer], under = removed > 0 && after < k.least[layer];
  if (k.sign > 0 && (over || under) && window > 1) w.stamps[window] = stamp_of(k, BAD);
}

// Judge the windows up to layer UPPER that begin with touched leaf t.
__device__ void judge_lower(const Store& s, const Work& w, const Bounds& k, u32 t, u32 touched) {
  u32 leaf = leaf_window(s, w.touched[t]);
  u32 before = t ? leaf_window(s, w.touched[t - 1]) : 0;
  int top = min(s.m, UPPER);
  u32 end = t + 1;
  for (int layer = 0; layer <= top; ++layer) {
    u32 window = leaf >> layer;
    if (t && before >> layer == window) return;
    u32 after = ((window + 1) << layer) - (1u << s.m);  // the first rank beyond
    u32 furthest = min(touched, t + (1u << layer));
    if (layer) end = first_not_below(w.touched, end, furthest, after);
    i64 change = net_change(w, t, end), removed = w.leaf_removes[end] - w.leaf_removes[t];
    judge(s, w, k, window, layer, change, removed);
    if (layer == UPPER) w.upper[window - (1u << (s.m - UPPER))] = {int(change), int(removed)};
  }
}

// Judge what lies above layer `base`, whose 2^(m - base) sums stand in `upper`: subtrees of up to
// SUBTREE layers, a block each. The sums of their roots take the places of the first ones.
__device__ void judge_upper(const Store& s, const Work& w, const Bounds& k, int base) {
  __shared__ int2 sum[1 << SUBTREE];
  int layers = min(SUBTREE, s.m - base);
  u32 subtrees = 1u << (s.m - base - layers), size = 1u << layers;
  for (u32 tree = blockIdx.x; tree < subtrees; tree += gridDim.x) {
    int2* leaves = w.upper + (u64(tree) << layers);
    for (u32 i = threadIdx.x; i < size; i += THREADS) sum[i] = leaves[i];
    for (u32 i = threadIdx.x; i < size; i += THREADS) leaves[i] = {0, 0};
    for (int up = 1; up <= layers; ++up) {
      __syncthreads();
      // In place, spaced: node i of this layer stands at i << up.
      for (u32 i = threadIdx.x; i < size >> up; i += THREADS) {
        int2 left = sum[i << up], right = sum[(i << up) + (1u << (up - 1))];
        int2 both = {left.x + right.x, left.y + right.y};
        sum[i << up] = both;
        u32 window = (1u << (s.m - base - up)) + (tree << (layers - up)) + i;
        if (both.x || both.y) judge(s, w, k, window, base + up, both.x, both.y);
      }
    }
    __syncthreads();
    if (threadIdx.x == 0 && base + layers < s.m) w.upper[u64(tree) << layers] = sum[0];
    __syncthreads();
  }
}

// Bring the sums of subtree roots together at the front, for the next SUBTREE layers.
__device__ void gather_roots(const Work& w, u32 roots) {
  if (blockIdx.x) return;
  for (u32 first = 0; first < roots; first += THREADS) {
    u32 i = first + threadIdx.x;
    int2 sum = {0, 0};
    if (i < roots) {
      sum = w.upper[u64(i) << SUBTREE];
      w.upper[u64(i) << SUBTREE] = {0, 0};
    }
    __syncthreads();
    if (i < roots) w.upper[i] = sum;
    __syncthreads();
  }
}

__device__ void judge_all(const Store& s, const Work& w, const Bounds& k) {
  u32 touched = w.report[TOUCHED];
  for (u32 t = thread_number(); t < touched; t += thread_count())
    judge_lower(s, w, k, t, touched);
  for (int base = UPPER; base < s.m; base += SUBTREE) {
    grid_sync();
    if (base > UPPER) {
      gather_roots(w, 1u << (s.m - base));
      grid_sync();
    }
    judge_upper(s, w, k, base);
  }
}

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

// Put a window on the list; whoever comes first does.
__device__ void list_window(const Store& s, const Work& w, const Bounds& k, u32 window, int layer,
                            u32 touched) {
  u32 stamp = stamp_of(k, LISTED);
  if (atomicExch(&w.stamps[window], stamp) == stamp) return;
  u64 i = atomicAdd((u64*)&w.report[WINDOWS], 1ull);
  u32 rank = (window << layer) - (1u << s.m);
  u32 first = first_not_below(w.touched, 0, touched, rank);
  w.window[i] = window;
  w.window_first[i] = first;
  w.window_last[i] = first_not_below(w.touched, first, touched, rank + (1u << layer));
  u64 held = s.counts[window];
  bool large = (u64(SEGMENT) << layer) > k.block_slots;
  w.window_offset[i] = large ? atomicAdd((u64*)&w.report[LARGE_SLOTS], held) : 0;
  add_to(w, HELD_ABOVE, held);
  add_to(w, WINDOWS_BY_LAYER + layer, 1);
  add_to(w, HELD_BY_LAYER + layer, held);
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
  u32 touched = w.report[TOUCHED];
  u32 leaves = 0;
  u64 held = 0;
  for (u32 t = thread_number(); t < touched; t += thread_count()) {
    u32 leaf = leaf_window(s, w.touched[t]);
    int layer = k.top_down ? layer_top_down(s, w, k, leaf) : layer_bottom_up(s, w, k, leaf);
    w.layer[t] = layer;
    if (layer) {
      list_window(s, w, k, leaf >> layer, layer, touched);
    } else if (moves(w, k, t)) {
      ++leaves;
      held += s.counts[leaf];
    }
  }
  leaves = warp_sum(leaves);
  held = warp_sum(held);
  if (lane_id() == 0 && leaves) {
    add_to(w, WINDOWS_BY_LAYER, leaves);
    add_to(w, HELD_BY_LAYER, held);
  }
}

__device__ void count_redundant(const Store& s, const Work& w, const Bounds& k) {
  u32 touched = w.report[TOUCHED], again = 0;
  for (u32 t = thread_number(); t < touched; t += thread_count())
    if (w.layer[t] == 0 && moves(w, k, t))
      again += rebalanced_again(s, w, k, leaf_window(s, w.touched[t]), 0);
  for (u32 i = thread_number(); i < w.report[WINDOWS]; i += thread_count()) {
    int layer = s.m - (31 - __clz(w.window[i]));
    again += rebalanced_again(s, w, k, w.window[i], layer);
  }
  again = warp_sum(again);
  if (lane_id() == 0 && again) add_to(w, REDUNDANT, again);
}

// Plan a located batch.
extern "C" __global__ void __launch_bounds__(THREADS) plan_batch(const __grid_constant__ Store s, const __grid_constant__ Work w,
               const __grid_constant__ Bounds k) {
  if (is_bad(w)) return;
  judge_all(s, w, k);
  grid_sync();
  choose(s, w, k);
  if (k.top_down) return;
  grid_sync();
  if (w.report[WINDOWS]) count_redundant(s, w, k);
}

// Take the counts back to what they were before plan_batch.
extern "C" __global__ void __launch_bounds__(THREADS) withdraw_batch(const __grid_constant__ Store s, const __grid_constant__ Work w,
                   const __grid_constant__ Bounds k) {
  if (!is_bad(w)) judge_all(s, w, k);
}

// The store grew by `levels` since the batch was located: rank i is i << levels now.
extern "C" __global__ void __launch_bounds__(THREADS)
    shift_ranks(const __grid_constant__ Work w, int levels) {
  for (u64 i = thread_number(); i < w.report[TOUCHED]; i += thread_count())
    w.touched[i] <<= levels;
  for (u64 i = thread_number(); i < w.report[ACTIONS]; i += thread_count())
    w.rank[w.row[i]] <<= levels;
}
