// PageRank by power iteration, all rounds in one cooperative launch with one barrier each.
//
// algorithms/pagerank/__init__.py defines the ranks. A row that is no vertex has rank 0 and no
// entries.
//
// Idea: WIDTH lanes pull a row together. A row of HUB entries or more, which is always a vertex's,
// is pulled by a whole block. A vertex leaves its share, rank / w, in one half of `shares` while
// all read the other half.
//
// Convergence: each block leaves the sums of its vertices' changes and dangling ranks in `partial`.
// That has two halves too, because a fast block writes the next round's sums while a slow one still
// adds up this round's. Every block adds up the same numbers in the same order, so all decide
// alike, and ranks are the same in every run on one device.
//
// Memory order: the barrier makes shares and sums visible; the sums are read from the L2 cache
// (__ldcg), since the L1 cache may hold those of two rounds before.
//
// Instances: power_iteration<4, false>, power_iteration<4, true>, power_iteration<32, false>,
//   power_iteration<32, true>
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK = 256;
constexpr i64 HUB = 4096;

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
  const double* leaving;
  double* ranks;
  double* shares;  // the half that is written
  double change, dangling;  // sums over this thread's vertices

  __device__ __forceinline__ void set(i64 u, double rank) {
    double w = leaving[u];
    ranks[u] = rank;
    shares[u] = w > 0 ? rank / w : 0;
    if (!(w > 0)) dangling += rank;
  }
};

template <bool WEIGHTED>
__device__ __forceinline__ double pulled(const i64* indptr, const u32* indices,
                                         const double* weights, const double* shares, i64 u,
                                         u32 first, u32 stride) {
  double sum = 0;
  for (i64 e = indptr[u] + first, end = indptr[u + 1]; e < end; e += stride) {
    double share = shares[indices[e]];
    sum += WEIGHTED ? weights[e] * share : share;
  }
  return sum;
}

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

// indptr, indices, weights: of the transpose. shares: double[2][n]. partial: double[2][blocks][2].
// rounds: how many it took, -1 where max_iter did not suffice.
template <int WIDTH, bool WEIGHTED>
__global__ void __launch_bounds__(BLOCK, 4)
power_iteration(const i64* indptr, const u32* indices, const double* weights,
                const double* leaving, const bool* is_vertex, const i64* hubs, i64 num_hubs, i64 n,
                i64 num_vertices, double damping, double tol, i64 max_iter, double* ranks,
                double* shares, double* partial, i64* rounds) {
  i64 threads = thread_count<BLOCK>();
  double change = 0, dangling = 0;  // of the last round, over all vertices
  for (i64 round = 0;; ++round) {
    const double* read = shares + (round + 1) % 2 * n;
    Ranks to = {leaving, ranks, shares + round % 2 * n, 0, 0};
    if (round == 0) {
      for (i64 u = thread_number(); u < n; u += threads)
        to.set(u, is_vertex[u] ? 1.0 / num_vertices : 0);
    } else {
      double base = (1 - damping + damping * dangling) / num_vertices;
      i64 groups = threads / WIDTH, tasks = (n + groups - 1) / groups;
      for (i64 task = 0; task < tasks; ++task) {  // the same number for every lane of a warp
        i64 u = task * groups + thread_number() / WIDTH;
        bool is_ours = u < n && indptr[u + 1] - indptr[u] < HUB;
        double sum = 0;
        if (is_ours)
          sum = pulled<WEIGHTED>(indptr, indices, weights, read, u, threadIdx.x % WIDTH, WIDTH);
        sum = group_sum<WIDTH>(sum);  // every lane calls it
        if (is_ours && threadIdx.x % WIDTH == 0) {
          double rank = is_vertex[u] ? base + damping * sum : 0;
          to.change += fabs(rank - ranks[u]);
          to.set(u, rank);
        }
      }
      for (i64 i = blockIdx.x; i < num_hubs; i += gridDim.x) {
        i64 u = hubs[i];
        double sum = pulled<WEIGHTED>(indptr, indices, weights, read, u, threadIdx.x, BLOCK);
        double rank = base + damping * block_sum<BLOCK>(sum);
        if (threadIdx.x == 0) {
          to.change += fabs(rank - ranks[u]);
          to.set(u, rank);
        }
      }
    }
    change = to.change;
    dangling = to.dangling;
    sum_over_grid(partial + round % 2 * 2 * gridDim.x, change, dangling);
    bool is_done = round > 0 && change < tol;
    if (is_done || round == max_iter) {
      if (thread_number() == 0) rounds[0] = is_done ? round : -1;
      return;
    }
  }
}
