// Components joined and separated (algorithms/tracker/components/cuda.py).
#include "algorithms/components/forest.cuh"
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/search.cuh"

// cpu.py has these two, too.
constexpr i64 LOOKED_AT = 1024;  // entries of a row, at most
constexpr u32 STEPS = 8;         // of a climb, at most

struct Rows {
  const i64* indptr;
  const u32* indices;
};

// Where v climbs to, by moving again and again to the neighbour of highest degree. Whole warps call
// it.
__device__ __forceinline__ u32 peak(const Rows& g, u32 v) {
  u64 at = u64(g.indptr[v + 1] - g.indptr[v]) << 32 | v;  // degree << 32 | vertex
  for (u32 step = 0; step < STEPS; ++step) {
    u64 best = at;
    i64 first = g.indptr[u32(at)], last = min(g.indptr[u32(at) + 1], first + LOOKED_AT);
    for (i64 i = first + lane_id(); i < last; i += 32) {
      u64 w = g.indices[i];
      best = max(best, u64(g.indptr[w + 1] - g.indptr[w]) << 32 | w);
    }
    best = warp_max(best);
    if (best == at) break;
    at = best;
  }
  return u32(at);
}

// Whether the row of v contains w.
__device__ __forceinline__ bool has_entry(const Rows& g, i64 v, u32 w) {
  i64 at = lower_bound(g.indices, g.indptr[v], g.indptr[v + 1], w);
  return at < g.indptr[v + 1] && g.indices[at] == w;
}

// Whether u and v have a common neighbour among the first of the shorter row, or climb to one peak
// or to two adjacent ones. Whole warps call it.
__device__ __forceinline__ bool are_joined(const Rows& g, i64 u, i64 v) {
  if (g.indptr[u + 1] - g.indptr[u] > g.indptr[v + 1] - g.indptr[v]) {
    i64 other = u;
    u = v;
    v = other;
  }
  i64 first = g.indptr[u], last = min(g.indptr[u + 1], first + LOOKED_AT);
  if (first == last) return false;
  for (i64 start = first; start < last; start += 32) {
    i64 i = start + lane_id();
    if (__any_sync(ALL_LANES, i < last && has_entry(g, v, g.indices[i]))) return true;
  }
  u32 x = peak(g, u32(u)), y = peak(g, u32(v));
  return x == y || has_entry(g, x, y);
}

// The only neighbour of u besides its neighbour v, if it is a leaf; else -1.
__device__ __forceinline__ i64 pair_of(const Rows& g, i64 u, i64 v) {
  i64 first = g.indptr[u];
  if (g.indptr[u + 1] - first != 2) return -1;
  i64 other = i64(g.indices[first]) + g.indices[first + 1] - v;
  return g.indptr[other + 1] - g.indptr[other] == 1 ? other : -1;
}

// Gives u, and its leaf if it still has it, a label of their own. False if one of them is the label
// of other vertices, too.
__device__ __forceinline__ bool label_pair(const Rows& g, i64 u, i64 leaf, i64 n, i32* labels) {
  bool kept = leaf < n && has_entry(g, u, u32(leaf));
  if (labels[u] == u || (kept && labels[u] == leaf)) return false;
  labels[u] = i32(kept ? min(u, leaf) : u);
  if (kept) labels[leaf] = labels[u];
  return true;
}

// A warp for each deleted entry. Leaves and pairs get labels of their own, each by one entry only.
// *cuts = 1 if another edge may cut. n: the number of vertices after.
extern "C" __global__ void separate(const u64* deleted, i64 count, const i64* old_indptr,
                                    const u32* old_indices, const i64* indptr,
                                    const u32* indices, i64 n, i32* labels, u32* cuts) {
  i64 i = warp_number();
  if (i >= count) return;
  Rows old = {old_indptr, old_indices}, now = {indptr, indices};
  i64 u = deleted[i] >> 32, v = u32(deleted[i]);
  bool is_leaf = old_indptr[u + 1] - old_indptr[u] == 1;
  bool is_at_leaf = old_indptr[v + 1] - old_indptr[v] == 1;
  if (is_leaf) {
    if (u >= n || lane_id()) return;
    if (labels[u] == u && !is_at_leaf) *cuts = 1;
    labels[u] = i32(u);
    return;
  }
  if (is_at_leaf) return;
  i64 leaf = pair_of(old, u, v);
  if (leaf >= 0) {
    if (u < n && lane_id() == 0 && !label_pair(now, u, leaf, n, labels)) *cuts = 1;
  } else if (u < v && pair_of(old, v, u) < 0) {
    bool joined = v < n && are_joined(now, u, v);
    if (!joined && lane_id() == 0) *cuts = 1;
  }
}

// A thread for each inserted entry joins the trees of both ends.
extern "C" __global__ void join(const u64* inserted, i64 count, i32* labels) {
  i64 i = thread_number();
  if (i >= count) return;
  u32 u = u32(inserted[i] >> 32), v = u32(inserted[i]);
  if (u < v) unite(i32(u), i32(v), labels);
}
