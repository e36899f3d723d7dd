// The triangles of an edge from a list of all, for the peeling of peel.cuh.
#pragma once
#include "algorithms/truss/peel.cuh"

// The triangles of every edge, as pairs of the two other edges.
struct Listed {
  static constexpr u32 PIECE = 128, MOST_SHIFT = 2;

  const i64* starts;
  const int2* pairs;

  __device__ bool shrink(const Peeling&, i64) { return false; }

  __device__ u32 pieces(u32 e) const { return pieces_of<PIECE>(starts[e + 1] - starts[e]); }

  template <class Visit>
  __device__ void each(u32 e, u32 part, u32 size, Visit visit) const {
    constexpr u32 STEPS = PIECE / 32;
    i64 first = starts[e] + i64(part) * size, last = min(first + size, starts[e + 1]);
    int2 held[STEPS];  // read together: visiting waits for the memory again and again
#pragma unroll
    for (u32 k = 0; k < STEPS; ++k) {
      i64 i = first + 32 * k + lane_id();
      held[k] = i < last ? pairs[i] : make_int2(-1, -1);
    }
#pragma unroll
    for (u32 k = 0; k < STEPS; ++k)
      if (first + 32 * k < last) visit(held[k].x, held[k].y);
  }
};
