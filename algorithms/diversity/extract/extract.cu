// Ego networks extracted as CSR, those of a batch of owners side by side as one graph.
//
// Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs",
// Algorithm 2.
//
// A *place* is a vertex of that graph: a neighbour of an owner. Owner i's places are rows[i] …
// rows[i + 1] - 1, in the order of its row.
//
// Idea: extraction needs neither locks nor atomics. How long a place's row will be is known
// beforehand, since it is the support of the edge between the owner and it; so a warp writes each
// row by itself, sorted. It goes through the shorter of the two rows that the entries must be in
// and searches the longer one, each lane from where its last search ended. The search also gives
// the number that the paper's map would.
//
// All else that scores need is a graph algorithm over the whole batch. Edges are numbered here and
// their triangles counted (Algorithm 5, lines 3 and 4), each triangle once instead of at every
// edge, which is a third of the searches or less. A long row gets a block, or a batch would end
// with a few lanes going through the rows of hubs.
#include "algorithms/truss/edge_rows.cuh"
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/rows.cuh"

constexpr u32 TILE = 8;    // lanes that intersect two rows of an ego network
constexpr i64 LONG = 256;  // candidates; a block takes an edge with more

// The support of every entry's edge, from those of the ranked view's slots. A thread an entry.
extern "C" __global__ void support_of_entries(const i64* indptr, const u32* indices, i64 n,
                                              i64 count, const u32* rank_of,
                                              const i64* ranked_indptr, const u32* ranked_indices,
                                              const i32* of_slot, i32* support) {
  i64 u = row_of_entry(indptr, n, count);
  i64 i = thread_number();
  if (i >= count) return;
  u32 a = rank_of[u], b = rank_of[indices[i]];
  u32 row = max(a, b);
  support[i] = of_slot[lower_bound(ranked_indices, ranked_indptr[row], ranked_indptr[row + 1],
                                   min(a, b))];
}

// The degree of every place in its ego network. A thread a place. first[i]: where owner i's row
// begins.
extern "C" __global__ void degrees(const i64* rows, i64 owners, i64 places, const i64* first,
                                   const i32* support, i32* degree) {
  i64 i = row_of_entry(rows, owners, places);
  i64 r = thread_number();
  if (r < places) degree[r] = support[first[i] + r - rows[i]];
}

// The rows of all places. A warp a place. starts: where the rows begin, from the degrees.
extern "C" __global__ void extract(const i64* indptr, const u32* indices, const i64* rows,
                                   i64 owners, i64 places, const i64* first, const i64* starts,
                                   u32* targets) {
  i64 r = warp_number();
  if (r >= places) return;
  i64 i = last_start(rows, 0, owners - 1, r);
  i64 own = first[i], end_own = own + rows[i + 1] - rows[i];
  u32 u = indices[own + r - rows[i]];
  i64 other = indptr[u], end_other = indptr[u + 1];
  bool from_other = end_other - other <= end_own - own;
  i64 a = from_other ? other : own, end_a = from_other ? end_other : end_own;
  i64 b = from_other ? own : other, end_b = from_other ? end_own : end_other;
  i64 to = starts[r];
  for (; a < end_a; a += 32) {
    i64 p = a + lane_id();
    bool hit = false;
    if (p < end_a) {
      u32 w = indices[p];
      b = lower_bound(indices, b, end_b, w);
      hit = b < end_b && indices[b] == w;
    }
    u32 hits = __ballot_sync(ALL_LANES, hit);
    if (hit) {
      i64 at = (from_other ? b : p) - own;  // in the owner's row
      targets[to + lanes_before(hits)] = u32(rows[i] + at);
    }
    to += __popc(hits);
  }
}

// larger[r]: the number of entries of row r that are larger than r. A thread a place.
extern "C" __global__ void count_larger(const i64* starts, const u32* targets, i64 places,
                                        i64* larger) {
  i64 r = thread_number();
  if (r >= places) return;
  i64 end = starts[r + 1];
  larger[r] = end - lower_bound(targets, starts[r], end, u32(r));
}

// List every edge, by its smaller end. A thread an entry. upper[r + 1]: the number of the first
// edge after those from r to larger places.
extern "C" __global__ void list_edges(const i64* starts, const u32* targets, i64 places,
                                      i64 entries, const i64* upper, u32* src, u32* dst) {
  i64 r = row_of_entry(starts, places, entries);
  i64 i = thread_number();
  if (i >= entries || targets[i] < r) return;
  i64 e = upper[r + 1] - (starts[r + 1] - i);
  src[e] = u32(r);
  dst[e] = targets[i];
}

// Of the rows of an edge's two ends, the parts that are larger than both ends: whatever is in both
// parts makes a triangle with the edge. The longer part comes last.
__device__ __forceinline__ Ends tails_of(const EdgeRows& g, u32 e) {
  u32 u = g.src[e], v = g.dst[e];
  Ends ends = {lower_bound(g.indices, g.first[u], g.last[u], v) + 1, g.last[u],
               lower_bound(g.indices, g.first[v], g.last[v], v), g.last[v]};
  if (ends.end_a - ends.a > ends.end_b - ends.b)
    ends = {ends.b, ends.end_b, ends.a, ends.end_a};
  return ends;
}

// Count the triangles that every step-th candidate of the shorter part makes, from `start` on: at
// the two other edges at once, and for the edge itself as the result.
__device__ __forceinline__ i32 count_triangles(const EdgeRows& g, Ends ends, u32 start, u32 step,
                                               i32* support) {
  i32 found = 0;
  for_common(g.indices, ends.a + start, ends.end_a, ends.b, ends.end_b, step, [&](i64 i, i64 j) {
    ++found;
    atomicAdd(&support[g.edge[i]], 1);
    atomicAdd(&support[g.edge[j]], 1);
  });
  return found;
}

// Add the triangles of every edge to `support`, each found once, at its edge of the two smallest
// places. TILE lanes an edge. An edge of many candidates is put on a list.
extern "C" __global__ void edge_supports(const u32* src, const u32* dst, const i64* starts,
                                         i64* last, u32* targets, i32* edge, i64 places, i64 edges,
                                         i32* support, u64* listed, i32* list) {
  EdgeRows g = {src, dst, starts, last, targets, edge, places};
  i64 e = thread_number() / TILE;
  u32 lane = threadIdx.x % TILE;
  i32 found = 0;
  if (e < edges) {
    Ends ends = tails_of(g, u32(e));
    if (ends.end_a - ends.a <= LONG)
      found = count_triangles(g, ends, lane, TILE, support);
    else if (lane == 0)
      list[atomicAdd(listed, 1ull)] = i32(e);
  }
  __syncwarp();
  found = group_sum<TILE>(found);
  if (lane == 0 && found) atomicAdd(&support[e], found);
}

// The same for the edges on the list. A block an edge.
extern "C" __global__ void long_edge_supports(const u32* src, const u32* dst, const i64* starts,
                                              i64* last, u32* targets, i32* edge, i64 places,
                                              i32* support, const u64* listed, const i32* list) {
  EdgeRows g = {src, dst, starts, last, targets, edge, places};
  for (i64 i = blockIdx.x; i < i64(*listed); i += gridDim.x) {
    u32 e = u32(list[i]);
    i32 found = count_triangles(g, tails_of(g, e), threadIdx.x, blockDim.x, support);
    __syncwarp();
    found = warp_sum(found);
    if (lane_id() == 0 && found) atomicAdd(&support[e], found);
  }
}

// size[l]: the number of places with label l. A thread a place.
extern "C" __global__ void count_members(const i32* label, i64 places, i32* size) {
  i64 r = thread_number();
  if (r < places) atomicAdd(&size[label[r]], 1);
}

// score[i]: the number of labels with at least `fewest` places that owner i has. A thread a place.
extern "C" __global__ void count_contexts(const i64* rows, i64 owners, i64 places, const i32* size,
                                          i32 fewest, i32* score) {
  i64 i = row_of_entry(rows, owners, places);
  i64 r = thread_number();
  if (r < places && size[r] >= fewest) atomicAdd(&score[i], 1);
}
