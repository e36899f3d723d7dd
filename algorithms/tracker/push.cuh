// What a pass that pushes does with a row, and the entries that changed since the layout was made:
// for pagerank.cu. algorithms/tracker/pagerank.py has the method.
//
// Steps have 16 bits: a pass reads them at random, and most of them then lie in shared memory or the
// nearer half of the L2 cache. The rest and the shares follow a step as it was rounded, so they are
// as right as in double; what rounding leaves of the rest, the next push takes.
#pragma once
#include "algorithms/pagerank/pull.cuh"

constexpr u64 GONE = 1ull << 31;
constexpr i64 FEW_KEYS = 16;  // of a row, for one lane

// What a changed entry names among `values`, negative if the entry went.
template <typename T>
__device__ __forceinline__ double named_by(u64 key, const T* values) {
  double value = value_of(values[u32(key & (GONE - 1))]);
  return key & GONE ? -value : value;
}

// The entries of all rows that changed since the layout was made, sorted; and where rows start.
struct Changed {
  const u64* keys;
  i64 count;
  const i64* first_keys;
  i64 rows;

  // Call use(row), by one thread a row.
  template <typename Use>
  __device__ __forceinline__ void for_rows(Use use) const {
    for (i64 i = thread_number<BLOCK>(); i < rows; i += thread_count<BLOCK>())
      use(u32(keys[first_keys[i]] >> 32));
  }

  // Call use(row, sum), by one thread a row: what its changed entries name among `values`. A lane a
  // row, and then all lanes for each row of many entries. Hubs come first: so a warp's rows are far
  // from each other.
  template <typename T, typename Use>
  __device__ __forceinline__ void sum_rows(const T* values, Use use) const {
    i64 warps = warp_count<BLOCK>();
    for (i64 first_row = warp_number<BLOCK>(); first_row < rows; first_row += 32 * warps) {
      i64 i = first_row + warps * lane_id();
      bool is_row = i < rows;
      i64 first = is_row ? first_keys[i] : 0;
      i64 end = !is_row ? 0 : i + 1 < rows ? first_keys[i + 1] : count;
      bool is_long = end - first > FEW_KEYS;
      double sum = 0;
      for (i64 j = first; !is_long && j < end; ++j) sum += named_by(keys[j], values);
      for (u32 left = __ballot_sync(ALL_LANES, is_long); left; left &= left - 1) {
        u32 lane = __ffs(left) - 1;
        i64 from = __shfl_sync(ALL_LANES, first, lane), to = __shfl_sync(ALL_LANES, end, lane);
        double part = 0;
        for (i64 j = from + lane_id(); j < to; j += 32) part += named_by(keys[j], values);
        part = warp_sum(part);
        if (lane_id() == lane) sum = part;
      }
      if (is_row) use(u32(keys[first] >> 32), sum);
    }
  }
};

// A pass over the fringe: a row's step is what would leave it no rest, as its neighbours' steps are.
struct Settle {
  const u32* degree;
  const double* rest;
  u16* next;
  double damping;
  double moved;  // degree * step, summed over this thread's rows

  struct Own {
    double degree, rest;
  };

  __device__ __forceinline__ Own own(i64 u) const { return {double(degree[u]), rest[u]}; }

  __device__ __forceinline__ void take(i64 u, const Own& own, double sum) {
    u16 step = own.degree ? brief((own.rest + damping * sum) / own.degree) : 0;
    next[u] = step;
    moved += own.degree * value_of(step);
  }
};

// The rest, summed over rows: absolute values; all; those of rows outside the fringe.
struct Sums {
  double norm, total, of_others;

  // By how much the ranks may be wrong, but for a factor.
  __device__ __forceinline__ double bound() const { return norm + fabs(total); }
};

// A pass that pushes: every row adds its step and `lift` to its share, and what that is too much or
// too little is the rest. `next` gets the next step, the rest over the degree.
struct Push {
  const u32* degree;
  const u16* steps;
  u16* next;
  double damping, lift;
  i64 inner, laid_out;  // the fringe: rows from `inner` on, of those in the layout
  double* shares;
  double* rest;
  Sums sums;  // over this thread's rows

  struct Own {
    double step, degree, rest, share;
  };

  __device__ __forceinline__ Own own(i64 u) const {
    return {value_of(steps[u]), double(degree[u]), __ldcs(rest + u), __ldcs(shares + u)};
  }

  __device__ __forceinline__ void take(i64 u, const Own& own, double sum) {
    if (own.degree == 0) return;
    double step = own.step + lift;
    __stcs(shares + u, own.share + step);
    leave(u, own.degree, own.rest - own.degree * (1 - damping) * lift -
                             own.degree * own.step + damping * sum, 0);
  }

  // What changed entries of a row name, `sum`, where the others have been added up.
  __device__ __forceinline__ void add(i64 u, double sum) {
    if (!degree[u]) return;
    double before = __ldcg(rest + u);
    leave(u, degree[u], before + damping * sum, before);
  }

  // The rest of a row, which was counted as `before`.
  __device__ __forceinline__ void leave(i64 u, double of_row, double left, double before) {
    __stcs(rest + u, left);
    next[u] = brief(left / of_row);
    sums.norm += fabs(left) - fabs(before);
    sums.total += left - before;
    if (u < inner || u >= laid_out) sums.of_others += left - before;
  }
};
