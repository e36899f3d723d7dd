// PageRank by power iteration, all rounds in one cooperative launch.
//
// algorithms/pagerank/__init__.py defines the ranks, layout.cuh the rows that are read here, pull.cuh
// a pass over them: a round. A row leaves its share, rank / w, in one half of `shares` while all
// read the other half.
//
// Precision: what a pass costs is reading shares, so they are float while the ranks are far from
// converged; sums and ranks are double throughout. A round brings any vector nearer to the ranks,
// wherever it comes from, so what is known at the end does not depend on how the rounds before the
// last read. What rounding took from the sum of all ranks, the surfer's jumps make up for in the next
// round. Shares become double when the next round but one is likely to be the last, or when the
// change comes near to float's precision; in a small graph they are from the start. Only a round that
// read double shares may be the last.
//
// Convergence: each block leaves the sums of its rows' changes, ranks and dangling ranks in `partial`.
// That has two halves too, because a fast block writes the next round's sums while a slow one still
// adds up this round's. Every block adds up the same numbers in the same order, so all decide
// alike, and ranks are the same in every run on one device.
//
// Memory order: the barrier makes shares and sums visible; the sums are read from the L2 cache
// (__ldcg), since the L1 cache may hold those of two rounds before.
//
// Instances: power_iteration<false>, power_iteration<true>
#include "algorithms/pagerank/pull.cuh"

constexpr double FINE = 1e-6;  // a change for which float shares, of 24 bits, are too coarse
constexpr double LOOSE = 0.1;  // a tolerance that the first rounds may meet
constexpr i64 FEW = 1 << 16;    // rows whose double shares lie in the caches as well as float ones do
constexpr double LEAST = 1e-15;  // one that hardly any round meets: so many rounds are asked for

// leaving[u]: the sum of the weights of row u. A warp a row.
extern "C" __global__ void sum_rows(const i64* indptr, const double* weights, i64 n,
                                    double* leaving) {
  i64 u = warp_number();
  if (u >= n) return;
  double sum = 0;
  for (i64 e = indptr[u] + lane_id(); e < indptr[u + 1]; e += 32) sum += weights[e];
  sum = warp_sum(sum);
  if (lane_id() == 0) leaving[u] = sum;
}

struct Ranks {
  const double* inverse;   // of each row: 1 / the weight that leaves it, 0 where none does
  const u32* place;        // of each row's share
  const double* teleport;  // of each row, where the surfer jumps to; not read if `is_even`
  double even;             // or the same for all
  bool is_even;
  double base, damping;    // a rank is base * teleport + damping * the sum of the shares
  double* ranks;
  double* shares;           // the half that is written, of float unless `is_double`
  bool is_double;
  double change, dangling, total;  // sums over this thread's rows: of ranks that dangle, and of all

  struct Own {
    double before, inverse, teleport;
    u32 place;
  };

  __device__ __forceinline__ Own own(i64 u) const {
    return {__ldcs(ranks + u), __ldcs(inverse + u), is_even ? even : __ldcs(teleport + u),
            __ldcs(place + u)};
  }

  __device__ __forceinline__ void take(i64 u, const Own& own, double sum) {
    set(u, own, base * own.teleport + damping * sum);
  }

  __device__ __forceinline__ void set(i64 u, const Own& own, double rank) {
    change += fabs(rank - own.before);
    if (own.inverse == 0) dangling += rank;
    total += rank;
    __stcs(ranks + u, rank);
    double share = rank * own.inverse;
    if (is_double)
      shares[own.place] = share;
    else
      ((float*)shares)[own.place] = float(share);
  }
};

// Whether the rounds that write shares are to write double ones, after a round that changed the
// ranks by `change` and one that changed them by `before`.
__device__ __forceinline__ bool is_near(double change, double before, double tol) {
  double ratio = change / before;
  return change < FINE || change * ratio * ratio < tol;
}

// values: of each place, the weight. first: of each row, its first rank, if has_first. shares:
// double[2][rows + 1]; the last, which entries without a vertex name, is 0. of_piece:
// double[pieces]. partial: double[2][blocks][3]. out: the ranks by vertex. rounds: how many it took,
// -1 where max_iter did not suffice.
template <bool WEIGHTED>
__global__ void __launch_bounds__(BLOCK, 1)
power_iteration(LAYOUT, u32 num_hot, const u32* places, const double* values, const u32* vertex,
                const u32* place, const double* inverse, const double* teleport, i64 has_teleport,
                const double* first, i64 has_first, double damping, double tol, i64 max_iter,
                double* ranks, double* shares, double* of_piece, double* partial, double* out,
                i64* rounds) {
  extern __shared__ double hot[];
  const Layout layout = GIVEN_LAYOUT;
  i64 half = rows + 1;
  double change = 0, dangling = 0, total = 1;  // of the last round, over all rows
  bool is_double = false;  // what the last round wrote, and then this one
  // Whether shares are to be double from now on.
  bool is_close = rows <= FEW || tol < LEAST || tol >= LOOSE;
  for (i64 round = 0;; ++round) {
    bool was_double = is_double;
    is_double = is_close || round + 1 >= max_iter;
    double* half_read = shares + (round + 1) % 2 * half;
    Ranks to = {inverse, place, teleport, 1.0 / rows, !has_teleport,
                1 - damping * (total - dangling), damping, ranks, shares + round % 2 * half,
                is_double, 0, 0, 0};
    if (round == 0) {
      for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
        to.set(u, {0, inverse[u], 0, place[u]}, has_first ? first[u] : to.even);
      if (thread_number<BLOCK>() < 2) {
        double* nowhere = shares + thread_number<BLOCK>() * half;
        nowhere[rows] = 0;
        if (!is_double) ((float*)nowhere)[rows] = 0;
      }
    } else if (was_double) {
      Shares<WEIGHTED, double> from = {places, values, half_read, num_hot, hot};
      pull(layout, from, to, of_piece);
    } else {
      u32 twice = u32(min(i64(2 * num_hot), rows));
      Shares<WEIGHTED, float> from = {places, values, (float*)half_read, twice, (float*)hot};
      pull(layout, from, to, of_piece);
    }
    double before = change;
    change = to.change;
    dangling = to.dangling;
    total = to.total;
    sum_over_grid(partial + round % 2 * 3 * gridDim.x, change, dangling, total);
    bool is_done = round > 0 && was_double && change < tol;
    is_close |= round > 1 && is_near(change, before, tol);
    if (is_done || round == max_iter) {
      for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
        out[vertex[u]] = ranks[u];
      if (thread_number<BLOCK>() == 0) rounds[0] = is_done ? round : -1;
      return;
    }
  }
}
