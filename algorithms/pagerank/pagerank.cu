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
// The fringe: in a graph of hubs, what converges last is what hangs on them by few edges: chains and
// small trees, which have hardly any of the entries. So in a symmetric graph of that kind
// FRINGE_PASSES over the rows of few entries alone go before each round, while the shares of the
// others, the inner rows, stay as they are: a block Gauss-Seidel iteration, in which the fringe is
// nearly solved for. What these passes take from the sum of all ranks the inner rows then get, in
// proportion to their weights, which is where a long walk ends; so a component without inner rows
// keeps its sum, which is right from the start. The first ranks are such that one has it too: even
// in the fringe, and by weight in the inner rows. RMAT 20 takes 8 rounds instead of 19. A pass reads
// one half of `shares` and writes the other, which gets the inner rows' shares first.
//
// Chebyshev's steps (steps.py) are for symmetric graphs in which no passes go before a round, and whose
// changes fall slowly. A round of them reads the ranks of the round before in `ranks` and those of
// the one before that in `older`, over which it writes its own, and the two change places.
//
// Why what is returned is right: a round brings any two vectors of one sum nearer to each other, to
// d times their distance or less. So if a round changes ranks x of sum 1 by `change`, it leaves them
// d / (1 - d) * change from the exact ones at most, wherever x comes from. The inner rows' rise is
// what makes the sum 1; without it nothing would be known. That rounds come to an end: once one of
// them has left more of the change before than Chebyshev's steps would, there are no more passes,
// and then each leaves d of it or less, or those steps begin.
//
// Convergence: each block leaves the sums of its rows' changes, ranks and dangling ranks in `partial`.
// That has two halves too, because a fast block writes the next sums while a slow one still adds up
// these. Every block adds up the same numbers in the same order, so all decide
// alike, and ranks are the same in every run on one device.
//
// Memory order: the barrier makes shares and sums visible; the sums are read from the L2 cache
// (__ldcg), since the L1 cache may hold those of two rounds before.
//
// Instances: power_iteration<false>, power_iteration<true>
#include "algorithms/pagerank/pull.cuh"

constexpr u32 FRINGE_PASSES = 2;
constexpr double POWER = 0, FIRST = 1;  // steps.py: what kind of step a round takes
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
  double kept;              // of ranks before, what the sums are to leave out: 0 or all
  double* ranks;
  double* next;             // where new ranks go: `ranks`, or those of the round before
  double omega;             // of Chebyshev's steps; up to FIRST: as power iteration has it
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
    if (omega > FIRST) {
      double older = __ldcs(next + u);
      rank = older + omega * (rank - older);
    }
    double counted = rank - kept * own.before;
    if (own.inverse == 0) dangling += counted;
    total += counted;
    leave(u, own.place, rank, own.inverse);
  }

  __device__ __forceinline__ void leave(i64 u, u32 place, double rank, double inverse) const {
    __stcs(next + u, rank);
    double share = rank * inverse;
    if (is_double)
      shares[place] = share;
    else
      ((float*)shares)[place] = float(share);
  }
};

// Whether the rounds that write shares are to write double ones, after a round that changed the
// ranks by `change` and one that changed them by `before`.
__device__ __forceinline__ bool is_near(double change, double before, double tol) {
  double ratio = change / before;
  return change < FINE || change * ratio * ratio < tol;
}

// What Chebyshev's steps leave of a change, in the long run.
__device__ __forceinline__ double chebyshev_rate(double damping) {
  return damping / (1 + sqrt(1 - damping * damping));
}

// The omega of the next round: see steps.py. before: the change of the last round, or 0 where power
// iteration is to go on.
__device__ __forceinline__ double next_omega(double omega, double change, double before,
                                             double damping) {
  if (omega > POWER) return 1 / (1 - damping * damping * (omega == FIRST ? 2 : omega) / 4);
  bool is_slow = before > 0 && change > chebyshev_rate(damping) * before;
  return damping < 1 && is_slow ? FIRST : POWER;
}

struct Iteration {
  Layout layout;
  const u32* places;
  const double* values;
  u32 num_hot;
  double* hot;
  double* of_piece;

  // A pass from task `first` on, of shares that are double or float.
  template <bool WEIGHTED>
  __device__ __forceinline__ void pass(const double* read, bool is_double, Ranks& to,
                                       i64 first) const {
    if (is_double) {
      Shares<WEIGHTED, double> from = {places, values, read, num_hot, hot};
      pull(layout, from, to, of_piece, first);
    } else {
      u32 twice = u32(min(i64(2 * num_hot), layout.rows));
      Shares<WEIGHTED, float> from = {places, values, (const float*)read, twice, (float*)hot};
      pull(layout, from, to, of_piece, first);
    }
  }

  // The first ranks: given, or even but for `inner` rows, which have as much in all by their
  // `weight`.
  __device__ __forceinline__ void begin(double* shares, Ranks& to, const double* first, i64 inner,
                                        double weight) const {
    i64 rows = layout.rows, half = rows + 1;
    for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>()) {
      double inverse = to.inverse[u], rank = first ? first[u] : to.even;
      if (!first && u < inner) rank = inverse > 0 ? inner * to.even / (weight * inverse) : 0;
      to.set(u, {0, inverse, 0, to.place[u]}, rank);
    }
    if (thread_number<BLOCK>() < 2) {
      double* nowhere = shares + thread_number<BLOCK>() * half;
      nowhere[rows] = 0;
      if (!to.is_double) ((float*)nowhere)[rows] = 0;
    }
  }
};

// The weight that leaves the first `inner` rows, over the grid.
__device__ __forceinline__ double weight_of(i64 inner, const double* inverse, double* sums) {
  double weight = 0;
  for (i64 u = thread_number<BLOCK>(); u < inner; u += thread_count<BLOCK>())
    if (inverse[u] > 0) weight += 1 / inverse[u];
  sum_over_grid(sums, weight);
  return weight;
}

// The first `inner` rows' shares, which this pass may write into the other half, too.
__device__ __forceinline__ void copy_shares(const double* from, double* to, bool are_double,
                                            i64 inner) {
  for (i64 u = thread_number<BLOCK>(); u < inner; u += thread_count<BLOCK>())
    if (are_double)
      to[u] = __ldcg(from + u);
    else
      ((float*)to)[u] = __ldcg((const float*)from + u);
}

// All shares of the first `inner` rows rise by `lift`.
__device__ __forceinline__ void raise(const Ranks& to, i64 inner, double lift) {
  for (i64 u = thread_number<BLOCK>(); u < inner; u += thread_count<BLOCK>()) {
    double inverse = to.inverse[u];
    if (inverse > 0) to.leave(u, u, __ldcg(to.ranks + u) + lift / inverse, inverse);
  }
}

// inner: the rows before the fringe, a multiple of 32 behind layout.unsliced, whose places are then
// the rows' own; or 0. values: of each place, the weight. first: of each row, its first rank, if
// has_first. ranks: double[2][rows]. shares: double[2][rows + 1]; the last, which entries without a vertex name, is 0.
// of_piece: double[pieces]. partial: double[2][blocks][3]. out: the ranks by vertex. rounds: how many
// it took, -1 where max_iter did not suffice.
template <bool WEIGHTED>
__global__ void __launch_bounds__(BLOCK, 1)
power_iteration(LAYOUT, u32 num_hot, const u32* places, const double* values, i64 inner,
                const u32* vertex, const u32* place, const double* inverse, const double* teleport,
                i64 has_teleport, const double* first, i64 has_first, i64 symmetric, double damping,
                double tol, i64 max_iter, double* ranks, double* shares, double* of_piece, double* partial,
                double* out, i64* rounds) {
  extern __shared__ double hot[];
  const Iteration with = {GIVEN_LAYOUT, places, values, num_hot, hot, of_piece};
  i64 fringe_task = with.layout.task_of((inner - unsliced) / 32);
  double change = 0, dangling = 0, total = 1;  // of the last round, over all rows
  double moved = 0, moved_dangling = 0;  // the sums' changes in passes over the fringe
  bool is_double = false;  // what the last pass wrote, and then this one
  // Whether shares are to be double from now on.
  bool is_close = rows <= FEW || tol < LEAST || tol >= LOOSE;
  if (tol < LEAST || max_iter == 0) inner = 0;  // rounds as they are
  double weight = inner ? weight_of(inner, inverse, partial) : 0;
  if (weight == 0) inner = 0;
  bool has_passes = inner;
  double* next = ranks;  // where a round's ranks go
  double omega = POWER;
  u32 step = 0;  // 0: all rows; else the number of the pass over the fringe
  for (i64 pass = 0, round = 0, sums = 1;; ++pass) {
    bool was_double = is_double;
    if (!step) is_double = is_close || round + 1 >= max_iter;
    double* read = shares + (pass + 1) % 2 * (rows + 1);
    double* written = shares + pass % 2 * (rows + 1);
    Ranks to = {inverse, place, teleport, 1.0 / rows, !has_teleport,
                1 - damping * (total - dangling), damping, step ? 1.0 : 0.0, ranks, next, omega,
                written, is_double, 0, 0, 0};
    double* summed = partial + sums % 2 * 3 * gridDim.x;
    if (step) {
      if (step == 1) copy_shares(read, written, is_double, inner);
      with.pass<WEIGHTED>(read, was_double, to, fringe_task);
      moved += to.total;
      moved_dangling += to.dangling;
      if (step++ < FRINGE_PASSES) {
        grid_sync();
        continue;
      }
      sum_over_grid(summed, moved, moved_dangling);
      ++sums;
      raise(to, inner, (1 - total - moved) / weight);
      grid_sync();
      total = 1;
      dangling += moved_dangling;
      step = 0;
      continue;
    }
    if (round == 0)
      with.begin(shares, to, has_first ? first : nullptr, inner, weight);
    else
      with.pass<WEIGHTED>(read, was_double, to, 0);
    double before = change, read_total = total;
    change = to.change;
    dangling = to.dangling;
    total = to.total;
    sum_over_grid(summed, change, dangling, total);
    ++sums;
    double limit = omega == POWER ? tol : damping * tol;
    bool is_done = round > 0 && was_double && change < limit;
    is_close |= round > 1 && is_near(change, before, tol);
    has_passes &= round <= 1 || change <= chebyshev_rate(damping) * before;
    if (is_done || round == max_iter) {
      const double* last = is_done ? ranks : next;
      // Chebyshev's steps take what float shares took from the sum down to a third of it at a time.
      double scale = omega == POWER ? 1 : 1 / (is_done ? read_total : total);
      for (i64 u = thread_number<BLOCK>(); u < rows; u += thread_count<BLOCK>())
        out[vertex[u]] = scale * last[u];
      if (thread_number<BLOCK>() == 0) rounds[0] = is_done ? round : -1;
      return;
    }
    moved = moved_dangling = 0;
    step = has_passes;
    double* written_ranks = next;
    next = ranks, ranks = written_ranks;
    bool may_begin = round > 1 && symmetric && !has_passes;
    bool was_power = omega == POWER;
    omega = next_omega(omega, change, may_begin ? before : 0, damping);
    if (was_power && omega == FIRST) next = ranks + rows;
    ++round;
  }
}
