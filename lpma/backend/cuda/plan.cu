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
#include "lpma/backend/cuda/work.cuh"
#include "lpma/cuda/grid.cuh"

constexpr int UPPER = 10;    // layers that a leaf's thread climbs
constexpr int SUBTREE = 12;  // layers that a block adds up at a time, in SUBTREE_BYTES
constexpr int NEAR = 1 << UPPER;  // touched leaves that a thread's windows reach, at the most
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
                                      int layer, i64 held, i64 change, i64 removed) {
  i64 after = held + k.sign * change;
  s.counts[window] = after;
  bool over = change > 0 && after > k.most[layer], under = removed > 0 && after < k.least[layer];
  if (k.sign > 0 && (over || under) && window > 1) w.stamps[window] = stamp_of(k, BAD);
}

// The touched leaves of a tile, and those behind it that its windows reach.
struct Tile {
  u32 rank[THREADS + NEAR];
  u32 inserts[THREADS + NEAR];
  u32 removes[THREADS + NEAR];
};

__device__ void load_tile(const Work& w, Tile& tile, u32 first, u32 touched) {
  u32 n = min(THREADS + NEAR, touched - first + 1);  // sums have one entry more
  __syncthreads();
  for (u32 i = threadIdx.x; i < n; i += THREADS) {
    tile.rank[i] = first + i < touched ? w.touched[first + i] : ~0u;
    tile.inserts[i] = w.leaf_inserts[first + i];
    tile.removes[i] = w.leaf_removes[first + i];
  }
  __syncthreads();
}

// Judge the windows up to layer UPPER that begin with touched leaf first + i. All searches come
// first, in shared memory, then all reads of counts: they do not wait for each other.
__device__ void judge_lower(const Store& s, const Work& w, const Bounds& k, const Tile& tile,
                            u32 first, u32 i, u32 touched) {
  u32 t = first + i, leaf = leaf_window(s, tile.rank[i]);
  u32 before = t ? leaf_window(s, i ? tile.rank[i - 1] : w.touched[t - 1]) : 0;
  u32 end[UPPER + 1], layers = 0, last = i + 1;
  i64 held[UPPER + 1];
#pragma unroll
  for (int layer = 0; layer <= UPPER; ++layer) {
    u32 window = leaf >> layer;
    if (layers == layer && layer <= s.m && !(t && before >> layer == window)) {
      u32 after = ((window + 1) << layer) - (1u << s.m);  // the first rank beyond
      u32 furthest = min(touched - first, i + (1u << layer));
      if (layer) last = lower_bound(tile.rank, last, furthest, after);
      ++layers;
    }
    end[layer] = last;
  }
#pragma unroll
  for (int layer = 0; layer <= UPPER; ++layer)
    held[layer] = layer < layers ? s.counts[leaf >> layer] : 0;
#pragma unroll
  for (int layer = 0; layer <= UPPER; ++layer) {
    if (layer >= layers) continue;
    int removed = tile.removes[end[layer]] - tile.removes[i];
    int change = int(tile.inserts[end[layer]] - tile.inserts[i]) - removed;
    judge(s, w, k, leaf >> layer, layer, held[layer], change, removed);
    if (layer == UPPER) w.upper[(leaf >> UPPER) - (1u << (s.m - UPPER))] = {change, removed};
  }
}

// Judge what lies above layer `base`, whose 2^(m - base) sums stand in `upper`: subtrees of up to
// SUBTREE layers, a block each, as heaps in shared memory. The sums of their roots take the places
// of the first ones.
__device__ void judge_upper(const Store& s, const Work& w, const Bounds& k, int base, int2* heap) {
  int layers = min(SUBTREE, s.m - base);
  u32 subtrees = 1u << (s.m - base - layers), size = 1u << layers;
  for (u32 tree = blockIdx.x; tree < subtrees; tree += gridDim.x) {
    int2* leaves = w.upper + (u64(tree) << layers);
    __syncthreads();
    for (u32 i = threadIdx.x; i < size; i += THREADS) {
      heap[size + i] = leaves[i];
      leaves[i] = {0, 0};
    }
    for (u32 nodes = size / 2; nodes; nodes /= 2) {
      __syncthreads();
      for (u32 node = nodes + threadIdx.x; node < 2 * nodes; node += THREADS) {
        int2 left = heap[2 * node], right = heap[2 * node + 1];
        heap[node] = {left.x + right.x, left.y + right.y};
      }
    }
    __syncthreads();
    for (u32 node = 1 + threadIdx.x; node < size; node += THREADS) {
      int2 sum = heap[node];
      if (!sum.x && !sum.y) continue;
      int depth = 31 - __clz(node);
      u32 window = (((1u << (s.m - base - layers)) + tree) << depth) + node - (1u << depth);
      judge(s, w, k, window, base + layers - depth, s.counts[window], sum.x, sum.y);
    }
    if (threadIdx.x == 0 && base + layers < s.m) leaves[0] = heap[1];
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

// `shared` has room for a tile, and for a heap of 2^(SUBTREE + 1) sums.
__device__ void judge_all(const Store& s, const Work& w, const Bounds& k, char* shared) {
  u32 touched = w.report[TOUCHED];
  Tile& tile = *(Tile*)shared;
  for (u32 first = blockIdx.x * THREADS; first < touched; first += gridDim.x * THREADS) {
    load_tile(w, tile, first, touched);
    if (first + threadIdx.x < touched) judge_lower(s, w, k, tile, first, threadIdx.x, touched);
  }
  for (int base = UPPER; base < s.m; base += SUBTREE) {
    grid_sync();
    if (base > UPPER) {
      gather_roots(w, 1u << (s.m - base));
      grid_sync();
    }
    judge_upper(s, w, k, base, (int2*)shared);
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
