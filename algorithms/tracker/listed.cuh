// Simple rows and a sorted list of some of their edges: what triangles and butterflies share. Each
// of these is counted only at the least of its listed edges, by (smaller end, larger end). The
// counterpart of listed_cpu.py.
#pragma once
#include "lpma/cuda/search.cuh"

struct Graph {
  const u64* edges;  // source << 32 | target, rising, each edge in both directions
  i64 count;
  const i64* indptr;
  const u32* indices;
};

// The entries first … last - 1 of the list.
struct Part {
  i64 first, last;
};

// The entries whose source is u.
__device__ __forceinline__ Part entries_of(const Graph& g, u64 u) {
  i64 first = lower_bound(g.edges, 0, g.count, u << 32);
  return {first, lower_bound(g.edges, first, g.count, (u + 1) << 32)};
}

// Whether the edge u, w is listed, and before `edge` in the order of (smaller end, larger end).
// part: the entries of u.
__device__ __forceinline__ bool is_before(const Graph& g, const Part& part, u64 u, u64 w,
                                        u64 edge) {
  if ((min(u, w) << 32 | max(u, w)) > edge) return false;
  u64 key = u << 32 | w;
  i64 at = lower_bound(g.edges, part.first, part.last, key);
  return at < part.last && g.edges[at] == key;
}

__device__ __forceinline__ i64 length_of(const Graph& g, i64 u) {
  return g.indptr[u + 1] - g.indptr[u];
}

// Call visit(x) for the x in both of the rows s and t, by thread `rank` of `size`.
template <class Visit>
__device__ __forceinline__ void for_common(const Graph& g, i64 s, i64 t, u32 rank, u32 size,
                                           Visit visit) {
  for_common(g.indices, g.indptr[s] + rank, g.indptr[s + 1], g.indptr[t], g.indptr[t + 1], size,
             [&](i64 i, i64) { visit(g.indices[i]); });
}
