// Tracked PageRank: what changed edges do to the rest; pushing and conjugate gradients in one launch.
//
// The package has the method. Rows are those of a Layout (pagerank/layout.cuh),
// made once for many batches: it holds the rows as they were then. Entries that came or went since
// are in a list, sorted by row, and are added up apart from the others, a warp a row: `extra`. Every
// row of the graph is one of the layout, and there is room for more, so that vertices may come.
//
// A key of a changed entry is row << 32 | GONE, if it went, | the row that it names.
//
// Precision: directions are float, which halves what a pass reads at random. The rest and the shares
// follow a direction as it was rounded, so they are as right as in double; directions are only a
// little less conjugate.
//
// Sums over the grid are taken in a fixed order: see pagerank/pull.cuh.
#include "algorithms/pagerank/pull.cuh"

constexpr u64 GONE = 1ull << 31;
constexpr double FAST = 0.6;  // of the norm before: a push that leaves more is one too slow

// Entries as the tracker has them, source << 32 | target, as keys.
extern "C" __global__ void row_keys(const u64* entries, i64 count, const u32* row_of, i64 are_gone,
                                    u64* keys) {
  i64 i = thread_number();
  if (i >= count) return;
  u64 row = row_of[entries[i] >> 32], named = row_of[u32(entries[i])];
  keys[i] = row << 32 | (are_gone ? GONE : 0) | named;
}

// The rows' degrees after a batch, of n vertices. A row that gets its first entries has the share
// `even`, and the rest 1 before they count.
extern "C" __global__ void measure_rows(const u32* vertex, i64 rows, const i64* indptr, i64 n,
                                        double even, u32* degree, double* shares, double* rest) {
  i64 u = thread_number();
  if (u >= rows) return;
  i64 v = vertex[u];
  u32 now = v < n ? indptr[v + 1] - indptr[v] : 0;
  if (now && !degree[u]) shares[u] = even, rest[u] = 1;
  degree[u] = now;
}

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

// The rest after a batch, by its keys. A warp a key.
extern "C" __global__ void move_rest(const u64* keys, i64 count, double damping,
                                     const double* shares, double* rest) {
  i64 i = warp_number();
  if (i >= count || !is_first_of_row(keys, i)) return;
  u32 u = keys[i] >> 32;
  double sum = of_changes(keys, i, count, shares, shares[u] / damping);
  if (lane_id() == 0) rest[u] += damping * sum;
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

// A round of pushing: every row adds its direction, the rest over the degree, to its share, and what
// it had as rest goes to its neighbours. `next` gets the direction of the next round.
struct Push {
  const u32* degree;
  const float* along;
  float* next;
  double damping;
  double* shares;
  double* rest;
  double norm;  // of the new rest, summed over this thread's rows

  struct Own {
    double along, degree, rest, share;
  };

  __device__ __forceinline__ Own own(i64 u) const {
    return {double(along[u]), double(degree[u]), __ldcs(rest + u), __ldcs(shares + u)};
  }

  __device__ __forceinline__ void take(i64 u, const Own& own, double sum) {
    if (own.degree == 0) return;
    double left = own.rest - own.degree * own.along + damping * sum;
    __stcs(shares + u, own.share + own.along);
    __stcs(rest + u, left);
    next[u] = float(left / own.degree);
    norm += fabs(left);
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

struct Solver {
  Layout layout;
  Shares<false, float> from;  // its shares are `along`
  Changed changed;
  const u32* degree;
  double damping;
  double* shares;
  double* rest;
  float* along;
  float* next;
  double* product;
  double* extra;
  double* of_piece;
  double* partial;

  // Call use(row, degree) for every row that has edges; those of the others are 0.
  template <typename Use>
  __device__ __forceinline__ void for_rows(Use use) const {
    for (i64 u = thread_number<BLOCK>(); u < layout.rows; u += thread_count<BLOCK>())
      if (degree[u]) use(u, double(degree[u]));
  }

  // Rows without edges have nothing, and all shares rise alike so that the rest sums to 0. Returns
  // its norm.
  __device__ __forceinline__ double begin(double* other) {
    double sum = 0, degrees = 0, norm = 0;
    for (i64 u = thread_number<BLOCK>(); u < layout.rows; u += thread_count<BLOCK>())
      if (!degree[u]) shares[u] = rest[u] = along[u] = next[u] = 0;
    if (thread_number<BLOCK>() == 0) along[layout.rows] = next[layout.rows] = 0;
    for_rows([&](i64 u, double of_row) { sum += rest[u], degrees += of_row; });
    sum_over_grid(partial, sum, degrees);
    double more = degrees > 0 ? sum / ((1 - damping) * degrees) : 0;
    for_rows([&](i64 u, double of_row) {
      shares[u] += more;
      rest[u] -= more * (1 - damping) * of_row;
      along[u] = float(rest[u] / of_row);
      norm += fabs(rest[u]);
    });
    sum_over_grid(other, norm);
    return norm;
  }

  // Push until the norm of the rest, which is returned, is `enough`, or falls too slowly.
  __device__ __forceinline__ double push(double norm, double enough, double* other) {
    for (bool is_fast = true; is_fast && norm > enough;) {
      Push to = {degree, along, next, damping, shares, rest, 0};
      pull(layout, from, to, of_piece);
      grid_sync();
      changed.sum_rows(along, [&](u32 u, double sum) {
        if (!degree[u]) return;
        double before = __ldcg(rest + u), now = before + damping * sum;
        rest[u] = now;
        next[u] = float(now / degree[u]);
        to.norm += fabs(now) - fabs(before);
      });
      double before = norm;
      norm = to.norm;
      sum_over_grid(other, norm);
      is_fast = norm < FAST * before;
      float* other = next;
      next = along, along = other;
      from.shares = along;
    }
    return norm;
  }

  // Conjugate gradients until the norm of the rest is `enough`.
  __device__ __forceinline__ void conjugate(double enough, double* other) {
    double length = 0, kept = 0, before = 0;  // of the step, and of this direction in the next
    for (bool is_first = true;; is_first = false) {
      double size = 0, norm = 0;
      for_rows([&](i64 u, double of_row) {
        if (!is_first) {
          shares[u] += length * double(along[u]);
          rest[u] -= length * (product[u] - damping * extra[u]);
        }
        size += rest[u] * rest[u] / of_row;
        norm += fabs(rest[u]);
      });
      sum_over_grid(partial, size, norm);
      if (norm <= enough) return;
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
      });
      pull(layout, from, to, of_piece);
      sum_over_grid(other, to.size);
      length = before / to.size;
    }
  }
};

// keys, first_keys: see Changed. along, next: float[rows + 1]; the last is 0. extra: double[rows], 0.
// enough: the norm of the rest at which to end. partial: double[2][blocks][2].
extern "C" __global__ void __launch_bounds__(BLOCK, 1)
solve(LAYOUT, u32 num_hot, const u32* places, const u64* keys, i64 count, const i64* first_keys,
      i64 changed, const u32* degree, double damping, double enough, double* shares, double* rest,
      float* along, float* next, double* product, double* extra, double* of_piece,
      double* partial) {
  extern __shared__ float hot[];
  double* other = partial + 2 * gridDim.x;
  Solver solver = {GIVEN_LAYOUT, {places, nullptr, along, num_hot, hot},
                   {keys, count, first_keys, changed}, degree, damping, shares, rest, along, next,
                   product, extra, of_piece, partial};
  double norm = solver.begin(other);
  norm = solver.push(norm, enough, other);
  if (norm > enough) solver.conjugate(enough, other);
}

// ranks[n], to be divided by their sum.
extern "C" __global__ void rank_rows(const u32* vertex, i64 rows, i64 n, const bool* present,
                                     const u32* degree, const double* shares, double* ranks) {
  i64 u = thread_number();
  if (u >= rows || vertex[u] >= n) return;
  i64 v = vertex[u];
  ranks[v] = !present[v] ? 0 : degree[u] ? degree[u] * shares[u] : 1;
}
