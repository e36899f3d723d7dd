// Two-hop neighbours of anchors, and the bitmaps of roots (algorithms/biclique/gbc/two_hop_cuda.py,
// search_cuda.py).
//
// A block takes an anchor u from a counter. It walks to each neighbour b of u and back to the
// anchors w in b's row: a warp for each neighbour, a lane for each entry. With `later` it walks
// only over the part of b's row above u. A table of its own, one number for each anchor, counts how
// often the block meets each w. The table is zero between anchors, since a second walk clears it.
//
// REQUIRES: sorted rows, and anchors numbered by rank.
#include "lpma/cuda/search.cuh"
#include "lpma/cuda/take.cuh"

struct Anchored {
  const i64* indptr;
  const u32* indices;
  const i64* back_indptr;
  const u32* back;
};

#define ANCHORED const i64 *indptr, const u32 *indices, const i64 *back_indptr, const u32 *back
#define GIVEN \
  { indptr, indices, back_indptr, back }

// Calls visit(j, w) for the j-th neighbour of u and every w in its row. Whole blocks call it.
template <class Visit>
__device__ __forceinline__ void walk(const Anchored& g, u32 u, bool later, Visit visit) {
  i64 row = g.indptr[u], end = g.indptr[u + 1];
  u32 warps = blockDim.x >> 5;
  for (i64 at = row + warp_id(); at < end; at += warps) {
    u32 b = g.indices[at];
    i64 first = g.back_indptr[b], last = g.back_indptr[b + 1];
    if (later) first = lower_bound(g.back, first, last, u + 1);
    for (i64 i = first + lane_id(); i < last; i += 32) visit(u32(at - row), g.back[i]);
  }
}

// found[u]: how many other anchors, or with `later` others of larger rank, share at least `least`
// neighbours with u.
extern "C" __global__ void count_two_hop(ANCHORED, i64 n, i64 least, i64 later, u32* tables,
                                         u64* next, i32* found) {
  Anchored g = GIVEN;
  u32* met = tables + blockIdx.x * n;
  __shared__ u32 count;
  for (i64 u; (u = take_for_block(next)) < n;) {
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    u32 mine = 0;
    walk(g, u32(u), later, [&](u32, u32 w) {
      mine += w != u && atomicAdd(&met[w], 1u) + 1 == u32(least);
    });
    if (mine) atomicAdd(&count, mine);
    __syncthreads();
    walk(g, u32(u), later, [&](u32, u32 w) { met[w] = 0; });
    if (threadIdx.x == 0) found[u] = i32(count);
  }
}

// The candidates of roots first … last - 1 of the list, as keys: the root's place in the list << 32
// | the candidate. starts[r]: where the keys of the r-th root begin among all; keys[0] is at
// starts[first].
extern "C" __global__ void list_candidates(ANCHORED, i64 n, i64 least, u32* tables, u64* next,
                                           const u32* roots, const i64* starts, i64 first,
                                           i64 last, u64* keys) {
  Anchored g = GIVEN;
  u32* met = tables + blockIdx.x * n;
  __shared__ u32 count;
  for (i64 r; (r = first + take_for_block(next)) < last;) {
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    u32 u = roots[r];
    u64* into = keys + (starts[r] - starts[first]);
    walk(g, u, true, [&](u32, u32 w) {
      if (atomicAdd(&met[w], 1u) + 1 == u32(least)) into[atomicAdd(&count, 1u)] = u64(r) << 32 | w;
    });
    __syncthreads();
    walk(g, u, true, [&](u32, u32 w) { met[w] = 0; });
  }
}

// The matrices of these roots, which are zero beforehand: bit j of column i says whether the i-th
// candidate has the root's j-th neighbour. cells[r]: where the r-th root's words begin, columns
// side by side; words[0] is at cells[first]. Here the table holds the column of each candidate,
// plus 1.
extern "C" __global__ void fill_matrices(ANCHORED, i64 n, u32* tables, u64* next, const u32* roots,
                                         const i64* starts, const i64* cells, i64 first, i64 last,
                                         const u64* keys, u32* words) {
  Anchored g = GIVEN;
  u32* column = tables + blockIdx.x * n;
  for (i64 r; (r = first + take_for_block(next)) < last;) {
    u32 u = roots[r];
    u32 columns = u32(starts[r + 1] - starts[r]);
    const u64* own = keys + (starts[r] - starts[first]);
    u32* matrix = words + (cells[r] - cells[first]);
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x) column[u32(own[i])] = i + 1;
    __syncthreads();
    walk(g, u, true, [&](u32 j, u32 w) {
      u32 i = column[w];
      if (i) atomicOr(&matrix[u64(j >> 5) * columns + i - 1], 1u << (j & 31));
    });
    __syncthreads();
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x) column[u32(own[i])] = 0;
  }
}
