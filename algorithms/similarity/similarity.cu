// Common neighbours of pairs of vertices, and of one vertex with all others.
//
// The entries of the shorter of two sorted rows are looked up in the longer one, neighbouring
// entries by neighbouring lanes, each from where its last search ended (as in GroupTC: Pan et al.,
// "Towards faster triangle counting on GPUs", 2024). Pairs come in three shapes, by the length of
// the shorter row, each in a launch of its own:
//
// short   TILE lanes a pair.
// long    A block a pair. Blocks take pairs as they come free.
// giant   All blocks, one pair after the other.
//
// Sums of values are added in the order of the entries, as on the CPU, so that they have the same
// bits: in them one warp has a long pair, and none is giant.
//
// Paths of two edges from one vertex are counted by where they end. A thread takes some of their
// last edges, whichever rows these are in, so that hubs are no burden.
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/rows.cuh"
#include "lpma/cuda/take.cuh"

constexpr u32 TILE = 8;             // lanes; cuda.py has it too
constexpr i64 SHORT = 256;          // entries of the shorter row, at most
constexpr i64 GIANT = 1 << 15;      // from here on
constexpr u32 BLOCK = 256, EACH = 8;  // of count_paths; cuda.py has BLOCK too

// How many pairs are long and giant, and the next long one to take. Long ones are listed from the
// left, giant ones from the right.
struct Work {
  u64 longs, giants, next;
};

struct Rows {
  const i64* indptr;
  const u32* indices;
  const i64* left;
  const i64* right;
  const double* values;  // of vertices; null: no sums
};

struct Pair {
  u32 u, v;
  i64 first, end;        // the shorter row
  i64 other, other_end;  // the longer one
};

struct Found {
  u32 both;    // entries in both rows
  u32 common;  // of them, but the pair itself
  double total;
};

__device__ __forceinline__ Pair pair_of(const Rows& g, i64 i) {
  i64 u = g.left[i], v = g.right[i];
  Pair p = {u32(u), u32(v), g.indptr[u], g.indptr[u + 1], g.indptr[v], g.indptr[v + 1]};
  if (p.end - p.first <= p.other_end - p.other) return p;
  return {p.u, p.v, p.other, p.other_end, p.first, p.end};
}

// Look up entry i of the shorter row, from p.other on, if i is one. `total` grows by the values of
// WIDTH lanes, in their order. For one whole warp.
template <int WIDTH>
__device__ __forceinline__ void look_up(const Rows& g, Pair& p, i64 i, Found& found) {
  double value = 0;
  bool is_common = false;
  if (i < p.end && p.other < p.other_end) {
    u32 wanted = g.indices[i];
    p.other = lower_bound(g.indices, p.other, p.other_end, wanted);
    if (p.other < p.other_end && g.indices[p.other] == wanted) {
      ++found.both;
      is_common = wanted != p.u && wanted != p.v;
      found.common += is_common;
      if (is_common && g.values) value = g.values[wanted];
    }
  }
  if (g.values && __any_sync(ALL_LANES, is_common))
    for (int lane = 0; lane < WIDTH; ++lane)
      found.total += __shfl_sync(ALL_LANES, value, lane, WIDTH);
}

// TILE threads a pair: short ones whole; of others what the other kernels add to, and their place
// in a list.
extern "C" __global__ void in_tiles(const i64* indptr, const u32* indices, const i64* left,
                                    const i64* right, i64 pairs, const double* values, i64* common,
                                    double* total, i64* either, Work* work, u32* list) {
  Rows g = {indptr, indices, left, right, values};
  i64 number = thread_number() / TILE;
  bool is_first = threadIdx.x % TILE == 0 && number < pairs;
  Pair p = number < pairs ? pair_of(g, number) : Pair{};
  i64 length = p.end - p.first, lengths = length + p.other_end - p.other;
  if (length > SHORT) {
    if (is_first && (values || length < GIANT)) list[atomicAdd(&work->longs, 1ull)] = u32(number);
    else if (is_first) list[pairs - 1 - atomicAdd(&work->giants, 1ull)] = u32(number);
    p.end = p.first;
  }
  Found found = {};
  for (i64 i = p.first + threadIdx.x % TILE; __any_sync(ALL_LANES, i < p.end); i += TILE)
    look_up<TILE>(g, p, i, found);
  u32 both = group_sum<TILE>(found.both), sum = group_sum<TILE>(found.common);
  if (!is_first) return;
  common[number] = sum;
  either[number] = lengths - both;
  if (values) total[number] = found.total;
}

// Look up the entries of a pair that fall to this warp, of `warps`.
__device__ void by_warps(const Rows& g, i64 number, i64 warp, i64 warps, i64* common,
                         double* total, i64* either) {
  Pair p = pair_of(g, number);
  Found found = {};
  for (i64 first = p.first + warp * 32; first < p.end; first += warps * 32)
    look_up<32>(g, p, first + lane_id(), found);
  u32 both = lanes_sum(found.both), sum = lanes_sum(found.common);
  if (lane_id()) return;
  if (sum) atomicAdd((u64*)common + number, u64(sum));
  if (both) atomicAdd((u64*)either + number, u64(-i64(both)));
  if (g.values) total[number] = found.total;
}

// Long pairs. With values, blocks of one warp.
extern "C" __global__ void in_blocks(const i64* indptr, const u32* indices, const i64* left,
                                     const i64* right, i64 pairs, const double* values,
                                     i64* common, double* total, i64* either, Work* work,
                                     u32* list) {
  Rows g = {indptr, indices, left, right, values};
  i64 longs = i64(work->longs);
  for (i64 i; (i = take_for_block(&work->next)) < longs;)
    by_warps(g, list[i], warp_id(), blockDim.x >> 5, common, total, either);
}

// Giant pairs.
extern "C" __global__ void by_all(const i64* indptr, const u32* indices, const i64* left,
                                  const i64* right, i64 pairs, const double* values, i64* common,
                                  double* total, i64* either, Work* work, u32* list) {
  Rows g = {indptr, indices, left, right, values};
  i64 giants = i64(work->giants);
  for (i64 i = 0; i < giants; ++i)
    by_warps(g, list[pairs - 1 - i], warp_number(), warp_count(), common, total, either);
}

// A thread a neighbour: the length of its row.
extern "C" __global__ void row_lengths(const i64* indptr, const u32* neighbors, i64 degree,
                                       i64* length) {
  i64 i = thread_number();
  if (i < degree) length[i] = indptr[neighbors[i] + 1] - indptr[neighbors[i]];
}

// Count the entries of the neighbours' rows, entry by entry; starts[i]: of the entries, the first
// in the row of neighbors[i]. No row is empty. Blocks of BLOCK.
extern "C" __global__ void count_paths(const i64* indptr, const u32* indices, const u32* neighbors,
                                       i64 degree, const i64* starts, i64* counts) {
  i64 all = starts[degree], step = i64(gridDim.x) * BLOCK * EACH;
  for (i64 first = i64(blockIdx.x) * BLOCK * EACH; first < all; first += step) {
    i64 end = min(first + BLOCK * EACH, all), entry[EACH], row[EACH];
    __syncthreads();
    RowRange rows = rows_of_block(starts, degree, first, end - 1);
#pragma unroll
    for (u32 k = 0; k < EACH; ++k) entry[k] = first + k * BLOCK + threadIdx.x;
    find_rows(starts, rows.low, rows.high, entry, row);
#pragma unroll
    for (u32 k = 0; k < EACH; ++k) {
      if (entry[k] >= end) continue;
      u32 end_of_path = indices[indptr[neighbors[row[k]]] + entry[k] - starts[row[k]]];
      atomicAdd((u64*)counts + end_of_path, 1ull);
    }
  }
}
