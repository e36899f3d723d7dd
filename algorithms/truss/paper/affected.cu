// The slides' program (Ding, Duan and Liu, "K-truss decomposition", ECE508), kernel by kernel, a
// thread per edge. cuda.py launches them in the slides' order. Edges stay in their rows: deleting
// one is taking its `standing` (the short update). An edge has one number in both of its rows, so
// the slides' search for the reverse of every edge is not needed.
#include "algorithms/truss/edge_rows.cuh"
#include "lpma/cuda/lanes.cuh"

// List the edges that are affected and stand. The slides' program spends most of its time here.
extern "C" __global__ void select_affected(i64 m, const u8* standing, const u8* affected,
                                           i32* selected, u64* length) {
  i64 e = thread_number();
  bool chosen = e < m && affected[e] && standing[e];
  append_of_lanes(chosen, i32(e), selected, length);
}

// visit(f, g) for every standing triangle e, f, g, as long as it answers true.
template <class Visit>
__device__ __forceinline__ void each_triangle(const EdgeRows& g, const u8* standing, u32 e,
                                              Visit visit) {
  Ends ends = rows_of(g, e);
  i64 i = ends.a, j = ends.b;
  while (i < ends.end_a && j < ends.end_b) {
    u32 a = g.indices[i], b = g.indices[j];
    if (a == b && standing[g.edge[i]] && standing[g.edge[j]])
      if (!visit(g.edge[i], g.edge[j])) return;
    i += a <= b;
    j += b <= a;
  }
}

// Of the selected edges, those in fewer than `least` triangles are to be deleted, and the other
// edges of these triangles become affected.
extern "C" __global__ void check_affected_edges(const i32* selected, i64 length, i64 least,
                                                const u32* src, const u32* dst, const i64* first,
                                                i64* last, u32* indices, i32* edge,
                                                const u8* standing, u8* affected,
                                                u8* to_delete) {
  if (thread_number() >= length) return;
  EdgeRows g = {src, dst, first, last, indices, edge, 0};
  u32 e = selected[thread_number()];
  i64 found = 0;
  each_triangle(g, standing, e, [&](i32, i32) { return ++found < least; });
  if (found >= least) return;
  to_delete[e] = 1;
  each_triangle(g, standing, e, [&](i32 f, i32 other) {
    affected[f] = affected[other] = 1;
    return true;
  });
}

// Edges to be deleted no longer stand; k - 1 is their truss number.
extern "C" __global__ void short_update(i64 m, const u8* to_delete, i64 k, u8* standing,
                                        i32* truss) {
  i64 e = thread_number();
  if (e >= m || !to_delete[e] || !standing[e]) return;
  standing[e] = 0;
  truss[e] = i32(k - 1);
}
