// The triangles that have one of the listed edges (algorithms/tracker/triangles/cuda.py).
//
// The two rows of each listed edge u, v are intersected: the entries of the shorter are searched
// for in the longer, each lane from where its last search ended. A triangle is counted at its least
// listed edge, by (smaller end, larger end). Whether another of its edges is listed takes a search
// in the few entries of u or of v in the list.
#include "algorithms/tracker/listed.cuh"
#include "lpma/cuda/lanes.cuh"

constexpr i64 LONG = 512;  // entries of the shorter row; with more, a block takes the edge, not a warp
constexpr u32 WARPS = 8;   // of a block, as in listed_cuda.py

// The share of lane `rank` of `size` in the triangles that are counted at an edge u < v.
__device__ __forceinline__ u64 count_at(const Graph& g, u64 edge, u32 rank, u32 size) {
  i64 u = edge >> 32, v = u32(edge);
  Part of_u = entries_of(g, u), of_v = entries_of(g, v);
  bool swap = length_of(g, u) > length_of(g, v);
  i64 s = swap ? v : u, t = swap ? u : v;
  u64 found = 0;
  for_common(g, s, t, rank, size, [&](u32 w) {
    found += !is_before(g, of_u, u, w, edge) && !is_before(g, of_v, v, w, edge);
  });
  return found;
}

// Adds to *total. A warp for each entry of the list. Neighbours in the list, which may share the
// row of a hub, go to different blocks. What takes one warp too long is left to its whole block.
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
  if (edge >> 32 < u32(edge)) {  // the edge is listed in both directions
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
