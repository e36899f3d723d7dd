// The butterflies that have one of the listed edges (algorithms/tracker/butterflies/cuda.py).
//
// A block takes each listed edge u, v, of which v has the lower degree. Its warps take the other
// neighbours w of v. Of the rows of u and w, the entries of the shorter are searched for in the
// longer, each lane from where its last search ended. A butterfly is counted at its least listed
// edge, by (smaller end, larger end).
#include "algorithms/tracker/listed.cuh"
#include "lpma/cuda/lanes.cuh"

// This lane's share of the common neighbours of u and w apart from v, without those whose edges to
// u or w are listed before `edge`.
__device__ __forceinline__ u64 common(const Graph& g, const Part& of_u, i64 u, i64 v, i64 w,
                                      u64 edge) {
  Part of_w = entries_of(g, w);
  bool swap = length_of(g, u) > length_of(g, w);
  i64 s = swap ? w : u, t = swap ? u : w;
  u64 found = 0;
  for_common(g, s, t, lane_id(), 32, [&](i64 x) {
    found += x != v && !is_before(g, of_u, u, x, edge) && !is_before(g, of_w, w, x, edge);
  });
  return found;
}

// Adds to *total. A block for each entry of the list.
extern "C" __global__ void count_butterflies(const u64* edges, i64 count, const i64* indptr,
                                             const u32* indices, u64* total) {
  Graph g = {edges, count, indptr, indices};
  u64 edge = edges[blockIdx.x];
  i64 u = edge >> 32, v = u32(edge);
  if (u > v) return;  // the edge is listed in both directions
  if (length_of(g, u) < length_of(g, v)) {
    u = u32(edge);
    v = edge >> 32;
  }
  Part of_u = entries_of(g, u), of_v = entries_of(g, v);
  u64 found = 0;
  for (i64 k = indptr[v] + warp_id(); k < indptr[v + 1]; k += blockDim.x / 32) {
    i64 w = indices[k];
    if (w != u && !is_before(g, of_v, v, w, edge)) found += common(g, of_u, u, v, w, edge);
  }
  __syncwarp();
  found = warp_sum(found);
  if (lane_id() == 0 && found) atomicAdd(total, found);
}
