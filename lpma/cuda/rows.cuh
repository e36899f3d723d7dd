// The row that an entry of a CSR belongs to, for grids with a thread an entry.
//
// Idea: the entries of a block are neighbours, so two searches over all rows, for its first and its
// last entry, leave few rows for its threads to search. Hubs and empty rows need nothing special.
// The two are made by a warp each, which reads 32 row starts at a time: a block waits for the
// memory five times rather than once for each bit of n.
#pragma once
#include "lpma/cuda/search.cuh"

// The last of rows low … high that starts at `entry` or before. REQUIRES: row `low` does.
__device__ __forceinline__ i64 last_start(const i64* indptr, i64 low, i64 high, i64 entry) {
  return lower_bound(indptr, low + 1, high + 1, entry + 1) - 1;
}

// The same, by a whole warp, to all lanes.
__device__ __forceinline__ i64 warp_last_start(const i64* indptr, i64 low, i64 high, i64 entry) {
  while (low < high) {
    i64 step = (high - low + 31) / 32, at = low + step * (lane_id() + 1);
    u32 before = __popc(__ballot_sync(ALL_LANES, at <= high && indptr[at] <= entry));
    low += step * before;
    high = min(high, low + step - 1);
  }
  return low;
}

struct RowRange {
  i64 low, high;
};

// The rows of the entries `first` and `last`, of n rows. Whole blocks of two warps or more call it,
// with a barrier between two calls.
__device__ __forceinline__ RowRange rows_of_block(const i64* indptr, i64 n, i64 first, i64 last) {
  __shared__ i64 bounds[2];
  if (warp_id() < 2) {
    i64 row = warp_last_start(indptr, 0, n - 1, warp_id() ? last : first);
    if (lane_id() == 0) bounds[warp_id()] = row;
  }
  __syncthreads();
  return {bounds[0], bounds[1]};
}

// The row of entry thread_number(), of m > 0 entries in n rows; threads beyond get the last
// entry's. Whole blocks of two warps or more call it.
__device__ __forceinline__ i64 row_of_entry(const i64* indptr, i64 n, i64 m) {
  i64 first = i64(blockIdx.x) * blockDim.x, last = min(first + blockDim.x, m) - 1;
  RowRange rows = rows_of_block(indptr, n, first, last);
  return last_start(indptr, rows.low, rows.high, min(thread_number(), last));
}

// The rows of EACH entries, among rows low … high. The searches go on side by side.
template <u32 EACH>
__device__ __forceinline__ void find_rows(const i64* indptr, i64 low, i64 high,
                                          const i64 (&entry)[EACH], i64 (&row)[EACH]) {
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) row[k] = low;
  for (i64 step = high > low ? 1ll << (63 - __clzll(high - low)) : 0; step; step >>= 1) {
#pragma unroll
    for (u32 k = 0; k < EACH; ++k) {
      i64 next = row[k] + step;
      if (next <= high && indptr[next] <= entry[k]) row[k] = next;
    }
  }
}
