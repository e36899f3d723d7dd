// Triangles that have one of the listed edges (algorithms/tracker/triangles.py).
//
// Each listed edge's rows are intersected, the longer searched for what the shorter holds, every
// lane from where its last search ended. A triangle is counted at its least listed edge by (smaller
// end, larger end): whether another of its edges is listed is a search in the few entries that the
// list has of u or of v.
#include "algorithms/tracker/listed.cuh"
#include "lpma/cuda/lanes.cuh"

constexpr i64 LONG = 512;  // entries of the shorter row, for a block rather than a warp
constexpr u32 WARPS = 8;   // a block: tracker_triangles.py

// Triangles that count at an edge u < v, by the lane `rank` of `size`.
__device__ __forceinline__ u64 count_at(const Graph& g, u64 edge, u32 rank, u32 size) {
  i64 u = edge >> 32, v = u32(edge);
  Part of_u = part_of(g, u), of_v = part_of(g, v);
  bool swap = length_of(g, u) > length_of(g, v);
  i64 s = swap ? v : u, t = swap ? u : v;
  i64 b = g.indptr[t], end_b = g.indptr[t + 1], end_a = g.indptr[s + 1];
  u64 found = 0;
  for (i64 a = g.indptr[s] + rank; a < end_a && b < end_b; a += size) {
    u32 w = g.indices[a];
    b = lower_bound(g.indices, b, end_b, w);
    if (b < end_b && g.indices[b] == w)
      found += !is_less(g, of_u, u, w, edge) && !is_less(g, of_v, v, w, edge);
  }
  return found;
}

// Adds to *total. A warp an entry of the list; neighbours in it, which share a row perhaps of a hub,
// go to different blocks. What is long for a warp is left to all of its block.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    count_touching(const u64* edges, i64 count, const i64* indptr, const u32* indices,
                   u64* total) {
  __shared__ u64 long_edges[WARPS];
  __shared__ u32 num_long;
  Graph g = {edges, count, indptr, indices};
  if (threadIdx.x == 0) num_long = 0;
  __syncthreads();
  i64 i = i64(warp_id()) * gridDim.x + blockIdx.x;
  u64 found = 0, edge = i < count ? edges[i] : 0;
  if (edge >> 32 < u32(edge)) {  // once of its two directions
    if (min(length_of(g, edge >> 32), length_of(g, u32(edge))) <= LONG)
      found = count_at(g, edge, lane_id(), 32);
    else if (lane_id() == 0)
      long_edges[atomicAdd(&num_long, 1u)] = edge;
  }
  __syncthreads();
  for (u32 j = 0; j < num_long; ++j)
    found += count_at(g, long_edges[j], threadIdx.x, blockDim.x);
  __syncwarp();
  found = warp_sum(found);
  if (lane_id() == 0 && found) atomicAdd(total, found);
}
