// Kernels of the programs over shards, where those of one device do not serve.
#include "lpma/cuda/rows.cuh"
#include "lpma/cuda/scan.cuh"

// pulled[u]: the sum of the shares that the entries of row u name, each times the entry's weight if
// is_weighted (weights is not read otherwise). A warp a row.
extern "C" __global__ void sum_shares(const i64* indptr, const u32* places, const double* weights,
                                      i64 is_weighted, const double* shares, i64 n,
                                      double* pulled) {
  i64 u = warp_number();
  if (u >= n) return;
  double sum = 0;
  for (i64 e = indptr[u] + lane_id(), end = indptr[u + 1]; e < end; e += 32) {
    double share = shares[places[e]];
    sum += is_weighted ? weights[e] * share : share;
  }
  sum = warp_sum(sum);
  if (lane_id() == 0) pulled[u] = sum;
}

// keep[i]: whether the vertex of entry i has a higher rank than that of its row: a higher degree, or
// the same and a smaller id. A thread an entry.
extern "C" __global__ void keep_upper(const i64* indptr, const u32* indices, i64 n, i64 m,
                                      const i64* degree, u8* keep) {
  i64 u = row_of_entry(indptr, n, m);
  i64 i = thread_number();
  if (i >= m) return;
  i64 v = indices[i], of_u = degree[u], of_v = degree[v];
  keep[i] = of_v > of_u || (of_v == of_u && v < u);
}

// Take over the estimates of others' rows: where rows[i] falls to values[i], mark the rows that hold
// it and that it supported. holders: of each row, the own rows that hold it. A warp a row.
extern "C" __global__ void take_over(const u32* rows, const i32* values, i64 count,
                                     const i64* indptr, const u32* holders, i32* estimate,
                                     u8* marked) {
  i64 i = warp_number();
  if (i >= count) return;
  i64 v = rows[i];
  i32 before = estimate[v], after = values[i];
  __syncwarp();
  if (after >= before) return;
  if (lane_id() == 0) estimate[v] = after;
  for (i64 e = indptr[v] + lane_id(), end = indptr[v + 1]; e < end; e += 32) {
    i32 of_holder = estimate[holders[e]];
    if (after < of_holder && of_holder <= before) marked[holders[e]] = 1;
  }
}
