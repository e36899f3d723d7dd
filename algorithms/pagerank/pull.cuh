// One pass over the rows of a Layout: for each row the sum of the shares that its entries name.
//
// Idea: a pass is a list of tasks, a warp each, the longest first and dealt out in turn, so that
// warps end together: a piece of a hub's row, four middling rows, or a slice of 32 short ones. Each
// lane reads four entries at once, and has the shares of several such fours in flight. Shares stand
// in the order of out-degree: on graphs with hubs a good part of the reads goes to the first of
// them, which every block copies to its shared memory, and most of the rest to a few megabytes,
// which the L2 cache holds. What is read once, entries above all, is marked to leave it first.
// Where there are hubs, a barrier follows, and a warp adds up the pieces of each.
//
// Shares may be float: half the bytes, and twice as many in shared memory and in the cache; or, where
// 8 bits of a number are enough, of 16 bits.
//
// Who does which task is fixed, so that sums are the same in every run on one device.
//
// Requires: a cooperative launch in blocks of BLOCK threads, with dynamic shared memory for `num_hot`
// shares.
#pragma once
#include "algorithms/pagerank/layout.cuh"
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK = 1024;

__device__ __forceinline__ double value_of(double x) { return x; }
__device__ __forceinline__ double value_of(float x) { return x; }

// 16 bits: the first of a float's.
__device__ __forceinline__ double value_of(u16 x) { return __uint_as_float(u32(x) << 16); }
__device__ __forceinline__ u16 brief(double x) {
  u32 bits = __float_as_uint(float(x));
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

// T: how shares are kept. They are added up as double.
template <bool WEIGHTED, typename T>
struct Shares {
  const u32* places;
  const double* values;  // of each entry, its weight
  const T* shares;
  u32 num_hot;
  T* hot;  // the first num_hot shares, in shared memory

  // For all threads of a block, before the pass.
  __device__ __forceinline__ void keep_hot() const {
    for (u32 i = threadIdx.x; i < num_hot; i += BLOCK) hot[i] = __ldcg(shares + i);
    __syncthreads();
  }

  __device__ __forceinline__ double at(u32 place) const {
    T share = place < num_hot ? hot[place] : shares[place];
    return value_of(share);
  }

  __device__ __forceinline__ double one(i64 e) const {
    double share = at(__ldcs(places + e));
    return WEIGHTED ? __ldcs(values + e) * share : share;
  }

  // Of four entries, e a multiple of 4.
  __device__ __forceinline__ double four(i64 e) const {
    uint4 p = __ldcs((const uint4*)(places + e));
    double a = at(p.x), b = at(p.y), c = at(p.z), d = at(p.w);
    if (WEIGHTED) {
      double2 low = __ldcs((const double2*)(values + e));
      double2 high = __ldcs((const double2*)(values + e) + 1);
      a *= low.x, b *= low.y, c *= high.x, d *= high.y;
    }
    return (a + b) + (c + d);
  }
};

// Rows: `own(u)`, what is known of a row before its shares are added up: read early, it is there in
// time; and `take(u, own, sum)`. Both are called by one thread for each row. of_piece:
// double[pieces]. first: the task to begin with, 0 or that of a slice.
template <bool WEIGHTED, typename T, typename Rows>
__device__ __forceinline__ void pull(const Layout& layout, const Shares<WEIGHTED, T>& from,
                                     Rows& to, double* of_piece, i64 first = 0) {
  from.keep_hot();
  u32 lane = lane_id();
  for (i64 task = first + warp_number<BLOCK>(); task < layout.tasks();
       task += warp_count<BLOCK>()) {
    double sum = 0;
    typename Rows::Own own = {};
    if (task < layout.pieces) {
      Span span = layout.piece(task);
      for (i64 e = span.first + 4 * lane; e < span.end; e += 128) sum += from.four(e);
      sum = warp_sum(sum);
      if (lane == 0) of_piece[task] = sum;
    } else if (task < layout.pieces + layout.teams()) {
      i64 u = layout.hubs + 4 * (task - layout.pieces) + lane / 8;
      bool is_row = u < layout.unsliced, is_first = is_row && lane % 8 == 0;
      if (is_first) own = to.own(u);
      Span span = is_row ? layout.row(u) : Span{0, 0};
      for (i64 e = span.first + 4 * (lane % 8); e < span.end; e += 32) sum += from.four(e);
      sum = group_sum<8>(sum);  // every lane calls it
      if (is_first) to.take(u, own, sum);
    } else {
      i64 slice = task - layout.pieces - layout.teams();
      i64 u = layout.unsliced + 32 * slice + lane;
      if (u < layout.rows) own = to.own(u);
      Span span = layout.slice(slice);
      i64 e = span.first;
      for (; e + 128 <= span.end; e += 128) sum += from.four(e + 4 * lane);
      for (; e < span.end; e += 32) sum += from.one(e + lane);
      if (u < layout.rows) to.take(u, own, sum);
    }
  }
  if (first || !layout.hubs) return;
  grid_sync();
  for (i64 u = warp_number<BLOCK>(); u < layout.hubs; u += warp_count<BLOCK>()) {
    typename Rows::Own own = {};
    if (lane == 0) own = to.own(u);
    double sum = 0;
    for (i64 i = layout.first_piece[u] + lane; i < layout.first_piece[u + 1]; i += 32)
      sum += __ldcg(of_piece + i);
    sum = warp_sum(sum);
    if (lane == 0) to.take(u, own, sum);
  }
}

// Sum some numbers of each thread over the grid, with one barrier: each block leaves its sums in
// `sums`, double[blocks][number of them], and all blocks add them up in the same order.
template <typename... Doubles>
__device__ __forceinline__ void sum_over_grid(double* sums, Doubles&... values) {
  double of_block[] = {block_sum<BLOCK>(values)...};
  constexpr u32 COUNT = sizeof...(values);
  if (threadIdx.x == 0)
    for (u32 k = 0; k < COUNT; ++k) sums[COUNT * blockIdx.x + k] = of_block[k];
  grid_sync();
  double all[COUNT] = {};
  for (u32 i = threadIdx.x; i < gridDim.x; i += BLOCK)
    for (u32 k = 0; k < COUNT; ++k) all[k] += __ldcg(sums + COUNT * i + k);
  u32 next = 0;
  ((values = block_sum<BLOCK>(all[next++])), ...);
}
