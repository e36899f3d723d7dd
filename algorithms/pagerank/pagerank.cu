// PageRank by power iteration, all rounds in one cooperative launch.
//
// algorithms/pagerank/__init__.py defines the ranks, layout.cuh the rows that are read here, pull.cuh
// a pass over them: a round. A row leaves its share, rank / w, in one half of `shares` while all
// read the other half.
//
// Convergence: each block leaves the sums of its rows' changes and dangling ranks in `partial`.
// That has two halves too, because a fast block writes the next round's sums while a slow one still
// adds up this round's. Every block adds up the same numbers in the same order, so all decide
// alike, and ranks are the same in every run on one device.
//
// Memory order: the barrier makes shares and sums visible; the sums are read from the L2 cache
// (__ldcg), since the L1 cache may hold those of two rounds before.
//
// Instances: power_iteration<false>, power_iteration<true>
#include "algorithms/pagerank/pull.cuh"
#include "lpma/cuda/scan.cuh"

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
  double* shares;           // the half that is written
  double change, dangling;  // sums over this thread's rows

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
    __stcs(ranks + u, rank);
    shares[own.place] = rank * own.inverse;
  }
};

// Sum two numbers of each thread over the grid, with one barrier: each block leaves its sums in
// `sums`, double[blocks][2], and all blocks add them up in the same order.
__device__ __forceinline__ void sum_over_grid(double* sums, double& change, double& dangling) {
  double of_block = block_sum<BLOCK>(change), dangling_of_block = block_sum<BLOCK>(dangling);
  if (threadIdx.x == 0) {
    sums[2 * blockIdx.x] = of_block;
    sums[2 * blockIdx.x + 1] = dangling_of_block;
  }
  grid_sync();
  change = dangling = 0;
  for (u32 i = threadIdx.x; i < gridDim.x; i += BLOCK) {
    change += __ldcg(sums + 2 * i);
    dangling += __ldcg(sums + 2 * i + 1);
  }
  change = block_sum<BLOCK>(change);
  dangling = block_sum<BLOCK>(dangling);
}

// values: of each place, the weight. first: of each row, its first rank, if has_first. shares:
// double[2][rows + 1]; the last, which entries without a vertex name, is 0. of_piece:
// double[pieces]. partial: double[2][blocks][2]. out: the ranks by vertex. rounds: how many it took,
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
  double change = 0, dangling = 0;  // of the last round, over all rows
  for (i64 round = 0;; ++round) {
    Ranks to = {inverse, place, teleport, 1.0 / rows, !has_teleport,
                1 - damping + damping * dangling, damping, ranks, shares + round % 2 * half, 0, 0};
    if (round == 0) {
      for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
        to.set(u, {0, inverse[u], 0, place[u]}, has_first ? first[u] : to.even);
      if (thread_number<BLOCK>() < 2) shares[thread_number<BLOCK>() * half + rows] = 0;
    } else {
      Shares<WEIGHTED> from = {places, values, shares + (round + 1) % 2 * half, num_hot, hot};
      pull(layout, from, to, of_piece);
    }
    change = to.change;
    dangling = to.dangling;
    sum_over_grid(partial + round % 2 * 2 * gridDim.x, change, dangling);
    bool is_done = round > 0 && change < tol;
    if (is_done || round == max_iter) {
      for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
        out[vertex[u]] = ranks[u];
      if (thread_number<BLOCK>() == 0) rounds[0] = is_done ? round : -1;
      return;
    }
  }
}
