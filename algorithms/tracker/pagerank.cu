// Tracked PageRank: what changed edges do to the rest, and conjugate gradients in one launch.
//
// algorithms/tracker/pagerank.py has the method. Rows are those of a Layout (pagerank/layout.cuh),
// made once for many batches: it holds the rows as they were then. Entries that came or went since
// are in a list, sorted by row, and are added up apart from the others, a warp a row: `extra`. Every
// row of the graph is one of the layout, and there is room for more, so that vertices may come.
//
// A key of a changed entry is row << 32 | GONE, if it went, | the row that it names.
//
// Sums over the grid are taken in a fixed order: see pagerank/pagerank.cu.
#include "algorithms/pagerank/pull.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u64 GONE = 1ull << 31;

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
__device__ __forceinline__ double of_changes(const u64* keys, i64 i, i64 count,
                                             const double* values, double own) {
  u32 u = keys[i] >> 32;
  double sum = 0;
  for (i64 j = i + lane_id(); j < count && u32(keys[j] >> 32) == u; j += 32) {
    double value = values[u32(keys[j] & (GONE - 1))] - own;
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
  const double* along;
  double* product;  // (D - damping * A) along, without the changed entries
  double damping;
  double size;  // its product with `along`, summed over this thread's rows

  struct Own {
    double along, degree;
  };

  __device__ __forceinline__ Own own(i64 u) const { return {along[u], double(degree[u])}; }

  __device__ __forceinline__ void take(i64 u, const Own& own, double sum) {
    double value = own.degree * own.along - damping * sum;
    __stcs(product + u, value);
    size += own.along * value;
  }
};

// Two sums over the grid: see pagerank/pagerank.cu.
__device__ __forceinline__ void sum_over_grid(double* sums, double& a, double& b) {
  double of_block = block_sum<BLOCK>(a), other = block_sum<BLOCK>(b);
  if (threadIdx.x == 0) {
    sums[2 * blockIdx.x] = of_block;
    sums[2 * blockIdx.x + 1] = other;
  }
  grid_sync();
  a = b = 0;
  for (u32 i = threadIdx.x; i < gridDim.x; i += BLOCK) {
    a += __ldcg(sums + 2 * i);
    b += __ldcg(sums + 2 * i + 1);
  }
  a = block_sum<BLOCK>(a);
  b = block_sum<BLOCK>(b);
}

// keys, starts: of all entries changed since the layout was made, and where rows start among them.
// along: double[rows + 1]; the last is 0. extra: double[rows], 0. enough: the norm of the rest at
// which to end. partial: double[2][blocks][2].
extern "C" __global__ void __launch_bounds__(BLOCK, 1)
conjugate(LAYOUT, u32 num_hot, const u32* places, const u64* keys, i64 count, const i64* first_keys,
          i64 changed, const u32* degree, double damping, double enough, double* shares,
          double* rest, double* along, double* product, double* extra, double* of_piece,
          double* partial) {
  extern __shared__ double hot[];
  const Layout layout = GIVEN_LAYOUT;
  double* other = partial + 2 * gridDim.x;
  double length = 0, kept = 0, before = 0;  // of the step, and of this direction in the next
  if (thread_number<BLOCK>() == 0) along[rows] = 0;
  for (bool is_first = true;; is_first = false) {
    double size = 0, norm = 0;
    for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>()) {
      double of_row = degree[u];
      if (of_row == 0) {
        if (is_first) shares[u] = rest[u] = along[u] = 0;
        continue;
      }
      if (!is_first) {
        shares[u] += length * along[u];
        rest[u] -= length * (product[u] - damping * extra[u]);
      }
      size += rest[u] * rest[u] / of_row;
      norm += fabs(rest[u]);
    }
    sum_over_grid(partial, size, norm);
    if (norm <= enough) return;
    kept = is_first ? 0 : size / before;
    before = size;
    for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
      if (degree[u]) along[u] = rest[u] / degree[u] + (is_first ? 0 : kept * along[u]);
    grid_sync();
    Product to = {degree, along, product, damping, 0};
    for (i64 i = warp_number<BLOCK>(); i < changed; i += warp_count<BLOCK>()) {
      u32 u = keys[first_keys[i]] >> 32;
      double sum = of_changes(keys, first_keys[i], count, along, 0);
      if (lane_id() == 0) {
        extra[u] = sum;
        to.size -= along[u] * damping * sum;
      }
    }
    Shares<false> from = {places, nullptr, along, num_hot, hot};
    pull(layout, from, to, of_piece);
    double none = 0;
    sum_over_grid(other, to.size, none);
    length = before / to.size;
  }
}

// ranks[n], to be divided by their sum.
extern "C" __global__ void rank_rows(const u32* vertex, i64 rows, i64 n, const bool* present,
                                     const u32* degree, const double* shares, double* ranks) {
  i64 u = thread_number();
  if (u >= rows || vertex[u] >= n) return;
  i64 v = vertex[u];
  ranks[v] = !present[v] ? 0 : degree[u] ? degree[u] * shares[u] : 1;
}
