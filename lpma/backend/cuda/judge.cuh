// Judging windows: whether each window with a touched leaf in it will fit after the batch.
//
// Idea: a window is judged once, by the thread of its first touched leaf. Up to layer UPPER that
// thread climbs from its leaf, since the end of each window is near. Above, windows are few: their
// sums are added up by blocks, a subtree each.
//
// Judging writes each window's count as it will be after the batch; with sign -1 it takes that
// back.
//
// Encoding: stamps[window] is the number of a plan << 2 | BAD or LISTED. A stamp of another plan
// says nothing, so nothing needs clearing between plans.
#pragma once
#include "lpma/backend/cuda/work.cuh"
#include "lpma/cuda/grid.cuh"

constexpr int UPPER = 10;    // layers that the thread of a leaf climbs
constexpr int SUBTREE = 12;  // layers that a block adds up at a time, in SUBTREE_BYTES
constexpr int NEAR = 1 << UPPER;  // touched leaves in a window of layer UPPER, at most
constexpr u32 BAD = 1, LISTED = 2;  // low bits of a stamp; the rest is the plan's number

struct Bounds {
  const i64* most;   // i64[8 (m+1)] by layer and the window modulo 8: slots a window may hold
  const i64* least;  // and must hold
  int sign;          // 1, or -1 to roll back
  u32 plan;          // the number of this plan
  int top_down;
  int settled;      // the actions are done: only windows move
  int block_slots;  // the largest window that a block moves by itself
  int pad;
};

__device__ __forceinline__ u32 stamp_of(const Bounds& bounds, u32 mark) {
  return (bounds.plan << 2) | mark;
}

// Bring the count of a touched window up to date, and mark the window where it will not fit.
__device__ __forceinline__ void judge(const Store& s, const Work& w, const Bounds& bounds,
                                      u32 window, int layer, i64 held, i64 change, i64 removed) {
  i64 after = held + bounds.sign * change;
  s.counts[window] = after;
  u32 entry = bound_of(layer, window);
  bool over = change > 0 && after > bounds.most[entry];
  bool under = removed > 0 && after < bounds.least[entry];
  if (bounds.sign > 0 && (over || under) && window > 1) w.stamps[window] = stamp_of(bounds, BAD);
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

// Judge the windows up to layer UPPER whose first touched leaf is first + i. All searches, in
// shared memory, come before all reads of counts, so that these do not wait for each other.
__device__ void judge_lower(const Store& s, const Work& w, const Bounds& bounds, const Tile& tile,
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
    judge(s, w, bounds, leaf >> layer, layer, held[layer], change, removed);
    if (layer == UPPER) w.upper[(leaf >> UPPER) - (1u << (s.m - UPPER))] = {change, removed};
  }
}

// Judge the windows above layer `base`, whose 2^(m - base) sums stand in `upper`: subtrees of up to
// SUBTREE layers, a block each, as heaps in shared memory. The sum of each subtree's root replaces
// its first sum.
__device__ void judge_upper(const Store& s, const Work& w, const Bounds& bounds, int base,
                            int2* heap) {
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
      judge(s, w, bounds, window, base + layers - depth, s.counts[window], sum.x, sum.y);
    }
    if (threadIdx.x == 0 && base + layers < s.m) leaves[0] = heap[1];
  }
}

// Bring the sums of the subtrees' roots together at the front, for the next SUBTREE layers.
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

// Judge all windows. `shared`: dynamic shared memory with room for a Tile, and for a heap of
// 2^(SUBTREE + 1) sums.
__device__ void judge_all(const Store& s, const Work& w, const Bounds& bounds, char* shared) {
  u32 touched = w.report[TOUCHED];
  Tile& tile = *(Tile*)shared;
  for (u32 first = blockIdx.x * THREADS; first < touched; first += gridDim.x * THREADS) {
    load_tile(w, tile, first, touched);
    if (first + threadIdx.x < touched) judge_lower(s, w, bounds, tile, first, threadIdx.x, touched);
  }
  for (int base = UPPER; base < s.m; base += SUBTREE) {
    grid_sync();
    if (base > UPPER) {
      gather_roots(w, 1u << (s.m - base));
      grid_sync();
    }
    judge_upper(s, w, bounds, base, (int2*)shared);
  }
}
