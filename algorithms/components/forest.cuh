// A forest of parents, hooked together by many threads at once.
//
// Source: Jaiganesh and Burtscher, "A high-performance connected components implementation for
// GPUs", HPDC 2018 (ECL-CC).
//
// Invariants: a parent is never larger than its child, so a root is the smallest vertex of its
// tree. Only a root is hooked, by compare-and-swap, and a vertex that is no root never becomes one
// again: no hook is lost. Halving a path may write an older ancestor over a newer one, which is an
// ancestor all the same. Hence the trees have the same roots in every run.
//
// Memory order: parents are read and written as volatile words or by atomics. A stale parent is an
// ancestor too, so no fence is needed.
#pragma once
#include "lpma/cuda/types.cuh"

// The root of v's tree at the time; halves the path to it (Jaiganesh and Burtscher, Figure 2).
__device__ __forceinline__ i32 root_of(i32 v, volatile i32* parent) {
  i32 at = parent[v];
  if (at == v) return v;
  i32 before = v, above;
  while (at > (above = parent[at])) {
    parent[before] = above;
    before = at;
    at = above;
  }
  return at;
}

// Make the trees of u and v one.
__device__ __forceinline__ void unite(i32 u, i32 v, i32* parent) {
  i32 a = root_of(u, parent), b = root_of(v, parent);
  while (a != b) {
    i32 high = max(a, b), low = min(a, b);
    i32 seen = atomicCAS(parent + high, high, low);
    if (seen == high) return;
    a = seen;  // meanwhile `high` was hooked under a smaller vertex
    b = low;
  }
}
