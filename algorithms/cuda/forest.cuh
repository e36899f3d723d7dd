// A forest of parents, in which trees are hooked together: see components.cu for why no hook is lost.
#pragma once
#include "types.cuh"

// The root of v's tree, at the time; halves the path to it (Jaiganesh and Burtscher, Figure 2).
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

// Make the trees of u and v one: the larger root is hooked under the smaller.
__device__ __forceinline__ void unite(i32 u, i32 v, i32* parent) {
  i32 a = root_of(u, parent), b = root_of(v, parent);
  while (a != b) {
    i32 high = max(a, b), low = min(a, b);
    i32 seen = atomicCAS(parent + high, high, low);
    if (seen == high) return;
    a = seen;  // high had been hooked meanwhile, under something smaller
    b = low;
  }
}
