// What passes over the rows do to shares and the rest: pagerank.cu has the passes.
//
// A key of a changed entry is row << 32 | GONE, if it went, | the row that it names.
//
// Requires: what algorithms/pagerank/pull.cuh does.
#pragma once
#include "algorithms/pagerank/pull.cuh"

constexpr u64 GONE = 1ull << 31;

__device__ __forceinline__ bool is_first_of_row(const u64* keys, i64 i) {
  return i == 0 || keys[i] >> 32 != keys[i - 1] >> 32;
}

// What the changed entries of row u, from key i on, name: their `values`, of entries that went
// negative, and minus `own` for each, likewise. By one warp.
template <typename T>
__device__ __forceinline__ double of_changes(const u64* keys, i64 i, i64 count, const T* values,
                                             double own) {
  u32 u = keys[i] >> 32;
  double sum = 0;
  for (i64 j = i + lane_id(); j < count && u32(keys[j] >> 32) == u; j += 32) {
    double value = double(values[u32(keys[j] & (GONE - 1))]) - own;
    sum += keys[j] & GONE ? -value : value;
  }
  return warp_sum(sum);
}

struct Product {
  const u32* degree;
  const float* along;
  double* product;  // (D - damping * A) along, without the changed entries
  double damping;
  double size;  // its product with `along`, summed over this thread's rows

  struct Own {
    double along, degree;
  };

  __device__ __forceinline__ Own own(i64 u) const {
    return {double(along[u]), double(degree[u])};
  }

  __device__ __forceinline__ void take(i64 u, const Own& own, double sum) {
    double value = own.degree * own.along - damping * sum;
    __stcs(product + u, value);
    size += own.along * value;
  }
};

// A pass over the fringe: a row's direction is what would leave it no rest, as its neighbours'
// directions are.
struct Settle {
  const u32* degree;
  const double* rest;
  float* next;
  double damping;
  double moved;  // degree * direction, summed over this thread's rows

  struct Own {
    double degree, rest;
  };

  __device__ __forceinline__ Own own(i64 u) const { return {double(degree[u]), rest[u]}; }

  __device__ __forceinline__ void take(i64 u, const Own& own, double sum) {
    double all = own.rest + damping * sum;
    next[u] = own.degree ? float(all / own.degree) : 0;
    if (own.degree) moved += all;
  }
};

// A round of pushing: every row adds its direction and `lift` to its share, and what that is too
// much or too little at its neighbours is their rest. `next` gets the direction of the next round,
// the rest over the degree.
struct Push {
  const u32* degree;
  const float* along;
  float* next;
  double damping, lift;
  i64 inner;  // rows before the fringe
  double* shares;
  double* rest;
  double norm, total, of_inner;  // of the new rest: over this thread's rows, and the inner of them

  struct Own {
    double along, degree, rest, share;
  };

  __device__ __forceinline__ Own own(i64 u) const {
    return {double(along[u]), double(degree[u]), __ldcs(rest + u), __ldcs(shares + u)};
  }

  __device__ __forceinline__ void take(i64 u, const Own& own, double sum) {
    if (own.degree == 0) return;
    double moves = own.along + lift;
    double left = own.rest - own.degree * moves + damping * (sum + own.degree * lift);
    __stcs(shares + u, own.share + moves);
    __stcs(rest + u, left);
    next[u] = float(left / own.degree);
    norm += fabs(left);
    sum_up(u, left);
  }

  __device__ __forceinline__ void sum_up(i64 u, double more) {
    total += more;
    if (u < inner) of_inner += more;
  }
};

// The entries of all rows that changed since the layout was made, sorted; and where rows start.
struct Changed {
  const u64* keys;
  i64 count;
  const i64* first_keys;
  i64 rows;

  // Call use(row, sum), by one thread a row: what its changed entries name among `values`.
  template <typename Use>
  __device__ __forceinline__ void sum_rows(const float* values, Use use) const {
    for (i64 i = warp_number<BLOCK>(); i < rows; i += warp_count<BLOCK>()) {
      double sum = of_changes(keys, first_keys[i], count, values, 0);
      if (lane_id() == 0) use(u32(keys[first_keys[i]] >> 32), sum);
    }
  }
};
