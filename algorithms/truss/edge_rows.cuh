// The simple view with the number of every entry's edge, and the rows of an edge's ends, to be
// intersected.
#pragma once
#include "lpma/cuda/search.cuh"

// Row u is first[u] … last[u] - 1, sorted; edge e joins src[e] and dst[e].
struct EdgeRows {
  const u32* src;
  const u32* dst;
  const i64* first;
  i64* last;
  u32* indices;
  i32* edge;
  i64 n;
};

struct Ends {
  i64 a, end_a, b, end_b;  // two rows, that from a not the longer
};

__device__ __forceinline__ Ends rows_of(const EdgeRows& g, u32 e) {
  u32 u = g.src[e], v = g.dst[e];
  Ends ends = {g.first[u], g.last[u], g.first[v], g.last[v]};
  if (ends.end_a - ends.a > ends.end_b - ends.b)
    ends = {ends.b, ends.end_b, ends.a, ends.end_a};
  return ends;
}
