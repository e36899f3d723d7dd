// Connected components: a forest of parents, hooked together edge by edge.
//
// Source: Jaiganesh and Burtscher, "A high-performance connected components implementation for
// GPUs", HPDC 2018 (ECL-CC). Every vertex first hangs under a smaller neighbour, which needs no
// atomic and joins most of the graph. Then each edge whose ends are in two trees hooks the larger
// root under the smaller one. A thread takes an entry, not a row, so that hubs are no burden.
//
// Encoding: parent[v] <= v; v is a root where they are equal, and labels are roots at the end.
#include "algorithms/components/forest.cuh"
#include "lpma/cuda/rows.cuh"

// A thread a vertex: parent = the first neighbour, where that one is smaller.
extern "C" __global__ void hang(const i64* indptr, const u32* indices, i64 n, i32* parent) {
  i64 v = thread_number();
  if (v >= n) return;
  i64 first = indptr[v];
  bool is_alone = first == indptr[v + 1];
  parent[v] = is_alone ? i32(v) : min(i32(v), i32(indices[first]));
}

// A thread an entry. In a symmetric graph the entries to smaller neighbours are all edges.
extern "C" __global__ void hook(const i64* indptr, const u32* indices, i64 n, i64 m,
                                i64 is_symmetric, i32* parent) {
  i64 u = row_of_entry(indptr, n, m);
  i64 i = thread_number();
  if (i >= m) return;
  i64 v = indices[i];
  if (is_symmetric && v >= u) return;
  unite(i32(u), i32(v), parent);
}

// A thread a vertex: hang it directly under its root. No tree changes meanwhile, but paths are
// shortened: hence volatile.
extern "C" __global__ void flatten(i64 n, i32* parent) {
  i64 v = thread_number();
  if (v >= n) return;
  volatile i32* read = parent;
  i32 at = read[v], above;
  while (at != (above = read[at])) at = above;
  parent[v] = at;
}
