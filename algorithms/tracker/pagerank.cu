// Tracked PageRank: what changed edges do to the rest; pushing and conjugate gradients in one launch.
//
// algorithms/tracker/pagerank.py has the method. Rows are those of a Layout (pagerank/layout.cuh),
// made once for many batches: it holds the rows as they were then. Entries that came or went since
// are in a list, sorted by row, and are added up apart from the others: `extra`. Every row of the
// graph is one of the layout, and there is room for more, so that vertices may come; passes go over
// those that had edges when it was made, and what has got some since is in the list.
//
// A key of a changed entry is row << 32 | GONE, if it went, | the row that it names.
//
// Precision: directions are float, which halves what a pass reads at random, and steps of pushing are
// shorter still (push.cuh). The rest and the shares follow a direction as it was rounded, so they are
// as right as in double; directions are only a little less conjugate.
//
// Sums over the grid are taken in a fixed order: see pagerank/pull.cuh.
#include "algorithms/tracker/push.cuh"

constexpr u32 FRINGE_PASSES = 1;
constexpr double FAST = 0.6;  // of the norm before: a push that leaves more is one too slow

// Entries as the tracker has them, source << 32 | target, as keys.
extern "C" __global__ void row_keys(const u64* entries, i64 count, const u32* row_of, i64 are_gone,
                                    u64* keys) {
  i64 i = thread_number();
  if (i >= count) return;
  u64 row = row_of[entries[i] >> 32], named = row_of[u32(entries[i])];
  keys[i] = row << 32 | (are_gone ? GONE : 0) | named;
}

__device__ __forceinline__ bool is_first_of_row(const u64* keys, i64 i) {
  return i == 0 || keys[i] >> 32 != keys[i - 1] >> 32;
}

// The rows' degrees after a batch, by its keys. A row that gets its first entries has the share
// `even`, and the rest 1 before they count. A warp a key.
extern "C" __global__ void measure_rows(const u64* keys, i64 count, double even, u32* degree,
                                        double* shares, double* rest) {
  i64 i = warp_number();
  if (i >= count || !is_first_of_row(keys, i)) return;
  u32 u = keys[i] >> 32;
  i32 more = 0;
  for (i64 j = i + lane_id(); j < count && u32(keys[j] >> 32) == u; j += 32)
    more += keys[j] & GONE ? -1 : 1;
  more = warp_sum(more);
  if (lane_id()) return;
  if (!degree[u]) shares[u] = even, rest[u] = 1;
  degree[u] += more;
}

// The rest after a batch, by its keys. A warp a key.
extern "C" __global__ void move_rest(const u64* keys, i64 count, double damping,
                                     const double* shares, double* rest) {
  i64 i = warp_number();
  if (i >= count || !is_first_of_row(keys, i)) return;
  u32 u = keys[i] >> 32;
  double own = shares[u], sum = 0;
  for (i64 j = i + lane_id(); j < count && u32(keys[j] >> 32) == u; j += 32)
    sum += damping * named_by(keys[j], shares) - (keys[j] & GONE ? -own : own);
  sum = warp_sum(sum);
  if (lane_id() == 0) rest[u] += sum;
}

// starts[i]: whether key i is the first of its row.
extern "C" __global__ void mark_rows(const u64* keys, i64 count, bool* starts) {
  i64 i = thread_number();
  if (i < count) starts[i] = is_first_of_row(keys, i);
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

struct Solver {
  Layout layout;  // of the rows that had edges when it was made
  i64 rows;       // of all
  i64 inner;      // rows before the fringe; 0: no passes over it
  const u32* places;
  u32 num_hot;
  float* hot;
  Changed changed;
  const u32* degree;
  double damping;
  double* shares;
  double* rest;
  u16* steps;
  u16* next;
  float* along;
  double* product;
  double* extra;
  double* of_piece;
  double* partial;
  double* other;   // half of the sums, beside `partial`
  double degrees;  // their sum

  // Call use(row, degree) for every row that has edges; those of the others are 0.
  template <typename Use>
  __device__ __forceinline__ void for_rows(Use use) const {
    for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
      if (degree[u]) use(u, double(degree[u]));
  }

  // Rows without edges have nothing, and all shares rise alike so that the rest sums to 0.
  __device__ __forceinline__ Sums begin() {
    double sum = 0;
    for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
      if (!degree[u]) shares[u] = rest[u] = 0, steps[u] = next[u] = 0;
    if (thread_number<BLOCK>() == 0) steps[rows] = next[rows] = 0;
    for_rows([&](i64 u, double of_row) { sum += rest[u], degrees += of_row; });
    sum_over_grid(partial, sum, degrees);
    double more = degrees > 0 ? sum / ((1 - damping) * degrees) : 0;
    Push to = {degree, steps, steps, damping, 0, inner, layout.rows, shares, rest, {0, 0, 0}};
    for_rows([&](i64 u, double of_row) {
      shares[u] += more;
      to.leave(u, of_row, rest[u] - more * (1 - damping) * of_row, 0);
    });
    sum_over_grid(other, to.sums.norm, to.sums.total, to.sums.of_others);
    return to.sums;
  }

  __device__ __forceinline__ void turn() {
    u16* before = steps;
    steps = next, next = before;
  }

  template <typename Rows>
  __device__ __forceinline__ void pull_steps(Rows& to, i64 first) const {
    u32 twice = u32(min(i64(2 * num_hot), rows));
    Shares<false, u16> from = {places, nullptr, steps, twice, (u16*)hot};
    pull(layout, from, to, of_piece, first);
  }

  // Steps of the fringe that leave it hardly any rest; the others' stay. Returns the sum of
  // degree * step over the fringe.
  __device__ __forceinline__ double settle() {
    for (i64 u = thread_number<BLOCK>(); u < inner; u += thread_count<BLOCK>())
      next[u] = __ldcg(steps + u);
    changed.for_rows([&](u32 u) {
      if (u >= layout.rows) next[u] = __ldcg(steps + u);
    });
    double moved = 0;
    for (u32 pass = 1; pass <= FRINGE_PASSES; ++pass) {
      Settle to = {degree, rest, next, damping, 0};
      pull_steps(to, layout.task_of((inner - layout.unsliced) / 32));
      moved = to.moved;
      if (pass < FRINGE_PASSES) grid_sync();
      turn();
    }
    sum_over_grid(partial, moved);
    return moved;
  }

  // Push until the bound is `enough`, or falls too slowly. Returns what the rest is then.
  __device__ __forceinline__ Sums push(Sums sums, double enough) {
    for (bool is_fast = true; is_fast && sums.bound() > enough;) {
      double moved = inner ? sums.of_others + settle() : sums.total;
      double lift = (sums.total / (1 - damping) - moved) / degrees;  // then the rest sums to 0
      Push to = {degree, steps, next, damping, lift, inner, layout.rows, shares, rest, {0, 0, 0}};
      pull_steps(to, 0);
      grid_sync();
      changed.sum_rows(steps, [&](u32 u, double sum) {
        if (u < layout.rows)
          to.add(u, sum);
        else
          to.take(u, to.own(u), sum);
      });
      sum_over_grid(other, to.sums.norm, to.sums.total, to.sums.of_others);
      is_fast = to.sums.norm < FAST * sums.norm;
      sums = to.sums;
      turn();
    }
    return sums;
  }

  // Conjugate gradients until the bound is `enough`.
  __device__ __forceinline__ void conjugate(double enough) {
    for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
      if (!degree[u]) along[u] = 0;
    if (thread_number<BLOCK>() == 0) along[rows] = 0;
    double length = 0, kept = 0, before = 0;  // of the step, and of this direction in the next
    for (bool is_first = true;; is_first = false) {
      double size = 0;
      Sums sums = {0, 0, 0};
      for_rows([&](i64 u, double of_row) {
        if (!is_first) {
          shares[u] += length * double(along[u]);
          rest[u] -= length * (product[u] - damping * extra[u]);
        }
        size += rest[u] * rest[u] / of_row;
        sums.norm += fabs(rest[u]);
        sums.total += rest[u];
      });
      sum_over_grid(partial, size, sums.norm, sums.total);
      if (sums.bound() <= enough) return;
      kept = is_first ? 0 : size / before;
      before = size;
      for_rows([&](i64 u, double of_row) {
        along[u] = float(rest[u] / of_row + (is_first ? 0 : kept * double(along[u])));
      });
      grid_sync();
      Product to = {degree, along, product, damping, 0};
      changed.sum_rows(along, [&](u32 u, double sum) {
        extra[u] = sum;
        to.size -= double(along[u]) * damping * sum;
        if (u >= layout.rows) to.take(u, to.own(u), 0);
      });
      pull(layout, Shares<false, float>{places, nullptr, along, num_hot, hot}, to, of_piece);
      sum_over_grid(other, to.size);
      length = before / to.size;
    }
  }
};

// all: rows, of which those of LAYOUT are the first. inner: rows before the fringe, or 0. keys, first_keys: see
// Changed. steps: u16[2][all + 1]; along: float[all + 1]; the last of each is 0. extra:
// double[all], 0. enough: the bound at which to end. partial: double[2][blocks][3].
extern "C" __global__ void __launch_bounds__(BLOCK, 1)
solve(LAYOUT, i64 all, i64 inner, u32 num_hot, const u32* places, const u64* keys, i64 count,
      const i64* first_keys, i64 changed, const u32* degree, double damping, double enough,
      double* shares, double* rest, u16* steps, float* along, double* product, double* extra,
      double* of_piece, double* partial) {
  extern __shared__ float hot[];
  Solver solver = {GIVEN_LAYOUT, all, inner, places, num_hot, hot,
                   {keys, count, first_keys, changed}, degree, damping, shares, rest, steps,
                   steps + all + 1, along, product, extra, of_piece, partial,
                   partial + 3 * gridDim.x, 0};
  Sums sums = solver.push(solver.begin(), enough);
  if (sums.bound() > enough) solver.conjugate(enough);
}

// ranks[n], to be divided by their sum.
extern "C" __global__ void rank_rows(const u32* vertex, i64 rows, i64 n, const bool* present,
                                     const u32* degree, const double* shares, double* ranks) {
  i64 u = thread_number();
  if (u >= rows || vertex[u] >= n) return;
  i64 v = vertex[u];
  ranks[v] = degree[u] ? degree[u] * shares[u] : present[v];
}
