// Butterflies with one of the listed edges, as in algorithms/tracker/butterflies.py.
//
// Idea: a block takes a listed edge u, v, where v is the end of lower degree. Its warps take the
// other neighbours w of v and look up the shorter of the rows of u and w in the longer one, every
// lane from where its last search ended. A butterfly is counted at its least listed edge, by
// (smaller end, larger end).
//
// Requires: a list (listed.cuh); sorted rows.
#include "algorithms/tracker/listed.cuh"
#include "lpma/cuda/lanes.cuh"

// The number of common neighbours of u and w apart from v, among this lane's, whose edges are not
// listed before `edge`.
__device__ __forceinline__ u64 common(const Graph& g, const Part& of_u, i64 u, i64 v, i64 w,
                                      u64 edge) {
  Part of_w = part_of(g, w);
  bool swap = length_of(g, u) > length_of(g, w);
  i64 s = swap ? w : u, t = swap ? u : w;
  i64 b = g.indptr[t], end_b = g.indptr[t + 1], end_a = g.indptr[s + 1];
  u64 found = 0;
  for (i64 a = g.indptr[s] + lane_id(); a < end_a && b < end_b; a += 32) {
    i64 x = g.indices[a];
    b = lower_bound(g.indices, b, end_b, u32(x));
    if (b < end_b && g.indices[b] == x && x != v)
      found += !is_less(g, of_u, u, x, edge) && !is_less(g, of_w, w, x, edge);
  }
  return found;
}

// Add their number to *total. A block an entry of the list.
extern "C" __global__ void count_butterflies(const u64* edges, i64 count, const i64* indptr,
                                             const u32* indices, u64* total) {
  Graph g = {edges, count, indptr, indices};
  u64 edge = edges[blockIdx.x];
  i64 u = edge >> 32, v = u32(edge);
  if (u > v) return;  // each edge is listed in both directions
  if (length_of(g, u) < length_of(g, v)) {
    u = u32(edge);
    v = edge >> 32;
  }
  Part of_u = part_of(g, u), of_v = part_of(g, v);
  u64 found = 0;
  for (i64 k = indptr[v] + warp_id(); k < indptr[v + 1]; k += blockDim.x / 32) {
    i64 w = indices[k];
    if (w != u && !is_less(g, of_v, v, w, edge)) found += common(g, of_u, u, v, w, edge);
  }
  __syncwarp();
  found = warp_sum(found);
  if (lane_id() == 0 && found) atomicAdd(total, found);
}
