// Joining and separating components (algorithms/tracker/components.py).
#include "forest.cuh"
#include "search.cuh"

constexpr i64 LOOKED_AT = 1024;  // entries of a row, at most: tracker/components.py

struct Rows {
  const i64* indptr;
  const u32* indices;
};

// Of v's first LOOKED_AT neighbours one of highest degree; for a whole warp. REQUIRES: v has one.
__device__ __forceinline__ u32 strongest(const Rows& g, i64 v) {
  i64 first = g.indptr[v], last = min(g.indptr[v + 1], first + LOOKED_AT);
  u64 best = 0;
  for (i64 i = first + lane_id(); i < last; i += 32) {
    u64 w = g.indices[i];
    best = max(best, u64(g.indptr[w + 1] - g.indptr[w]) << 32 | w);
  }
  for (int by = 16; by; by >>= 1) best = max(best, __shfl_xor_sync(ALL_LANES, best, by));
  return u32(best);
}

// Whether the row of v holds w.
__device__ __forceinline__ bool has_entry(const Rows& g, i64 v, u32 w) {
  i64 at = lower_bound(g.indices, g.indptr[v], g.indptr[v + 1], w);
  return at < g.indptr[v + 1] && g.indices[at] == w;
}

// Whether u and v have a common neighbour among the shorter row's first, or their strongest
// neighbours are joined; for a whole warp.
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
  return has_entry(g, strongest(g, u), strongest(g, v));
}

// A warp a deleted entry: leaves are labelled by themselves; *cuts = 1 where an edge may cut.
// before: the row starts before, in which both ends have entries; n: vertices after.
extern "C" __global__ void separate(const u64* deleted, i64 count, const i64* before,
                                    const i64* indptr, const u32* indices, i64 n, i32* labels,
                                    u32* cuts) {
  i64 i = thread_number() >> 5;
  if (i >= count) return;
  i64 u = deleted[i] >> 32, v = u32(deleted[i]);
  bool is_leaf = before[u + 1] - before[u] == 1, is_at_leaf = before[v + 1] - before[v] == 1;
  if (is_leaf) {
    if (u >= n || lane_id()) return;
    if (labels[u] == u && !is_at_leaf) *cuts = 1;
    labels[u] = i32(u);
  } else if (u < v && !is_at_leaf) {
    bool joined = v < n && are_joined({indptr, indices}, u, v);
    if (!joined && lane_id() == 0) *cuts = 1;
  }
}

// A thread an inserted entry: the trees of both ends are hooked together.
extern "C" __global__ void join(const u64* inserted, i64 count, i32* labels) {
  i64 i = thread_number();
  if (i >= count) return;
  u32 u = u32(inserted[i] >> 32), v = u32(inserted[i]);
  if (u < v) unite(i32(u), i32(v), labels);
}
