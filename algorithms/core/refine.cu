// Core numbers of a small graph by h-indices, all rounds in one cooperative kernel.
//
// Source: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011, as
// in h_index.cu.
//
// Idea: to peel a small graph takes hundreds of rounds in which hardly any vertex takes part, and
// each waits for the one before. An estimate of the core number, at first the degree, becomes the
// h-index of the neighbours' estimates: the largest h such that h of them are h or more. Here all
// levels go on at once, and a few dozen rounds do. Estimates only fall, and never below the core
// number. So a newer value that is read in place of the last round's does no harm, and saves rounds.
//
// A vertex is looked at in a round if it was *marked* in the round before. That no mark is missing:
// let u fall in this round from `bound` to `refined`, and let v be a neighbour.
//   - If v is not marked for this round, its estimate stays, and v has counted u only if its
//     estimate is at most `bound`. u marks it if it is also above `refined`.
//   - If v is marked, it may count u as it was. u marks it again if v's estimate, as u has read it,
//     is above `refined`; it only falls, so otherwise u counts for v either way.
//
// Vertices are dealt out to warps. Short rows are refined four at a time by eight lanes each, others
// by a warp, and those of more than LONG entries by a block.
//
// Encoding: a state is estimate | a mark for even rounds << 16 | one for odd rounds << 24. While a
// round goes on, only marks for the next are written, so that a vertex cannot lose its mark for this
// one. A mark is round / 2 modulo 256: an old one that looks new costs a look, and nothing else.
//
// Requires: core numbers of at most `most`; dynamic shared memory for most + 1 words, and for the
// WARP_BINS of all warps; rows without duplicates; `last` and the number of long rows zero.
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK = 1024;
constexpr u32 SHORT = 32, LONG = 256;  // entries; cuda.py has LONG too
constexpr u32 LOADS_IN_FLIGHT = 4;  // loads a lane has under way
constexpr u32 WARP_BINS = LONG + 1;  // words; a block has those of its warps
static_assert(32 / (SHORT / LOADS_IN_FLIGHT) * (SHORT + 1) <= WARP_BINS, "four short rows at a time");

struct Graph {
  const i64* __restrict__ indptr;
  const u32* __restrict__ indices;
  u32 n;
  u32* state;
};

// A vertex to be refined, and its row.
struct Row {
  u32 v, estimate, length;
  i64 first;
};

// Teams of threads that refine a row together: neighbouring lanes of a warp, or a block.
template <u32 LANES>
struct Lanes {
  static constexpr u32 SIZE = LANES;
  __device__ static u32 rank() { return lane_id() % SIZE; }
  __device__ static u32 mask() { return ALL_LANES >> (32 - SIZE) << (lane_id() & ~(SIZE - 1)); }
  __device__ static void sync() { __syncwarp(mask()); }
  __device__ static u32 count(bool is) { return __popc(__ballot_sync(mask(), is)); }
  // The sum of x over the ranks up to this one, and over all.
  __device__ static u32 inclusive(u32 x, u32& total) {
#pragma unroll
    for (u32 by = 1; by < SIZE; by <<= 1) {
      u32 y = __shfl_up_sync(mask(), x, by, SIZE);
      if (rank() >= by) x += y;
    }
    total = __shfl_sync(mask(), x, SIZE - 1, SIZE);
    return x;
  }
};

struct Block {
  static constexpr u32 SIZE = BLOCK;
  __device__ static u32 rank() { return threadIdx.x; }
  __device__ static void sync() { __syncthreads(); }
  __device__ static u32 count(bool is) { return __syncthreads_count(is); }
  __device__ static u32 inclusive(u32 x, u32& total) {
    return block_exclusive<BLOCK>(x, total) + x;
  }
};

__device__ __forceinline__ u32 estimate_of(u32 state) { return state & 0xffff; }

__device__ __forceinline__ u32 mark_of(u32 round) { return round >> 1 & 0xff; }

__device__ __forceinline__ bool is_marked(u32 state, u32 round) {
  return (state >> (round & 1 ? 24 : 16) & 0xff) == mark_of(round);
}

__device__ __forceinline__ void mark(u32* state, u32 round) {
  __stcg((u8*)state + 2 + (round & 1), u8(mark_of(round)));
}

// The largest h of 1 … bound such that bins h … bound hold h or more. REQUIRES: there is one.
template <typename Team>
__device__ __forceinline__ u32 h_index(const u32* bins, u32 bound) {
  u32 above = 0, total;
  for (u32 top = bound;; top -= Team::SIZE) {
    bool is_one = Team::rank() < top;
    u32 h = top - Team::rank();
    u32 holds = above + Team::inclusive(is_one ? bins[h] : 0, total);
    u32 too_high = Team::count(is_one && holds < h);
    if (too_high < min(Team::SIZE, top)) return top - too_high;
    above += total;
  }
}

// Refine one estimate. Returns whether this thread has seen a mark for the next round. All threads
// of a team; `bins`: estimate + 1 of its own.
template <typename Team>
__device__ __forceinline__ bool refine(const Graph& g, const Row& row, u32 round, u32* bins) {
  const u32* ends = g.indices + row.first;
  u32 bound = row.estimate, w[LOADS_IN_FLIGHT], state[LOADS_IN_FLIGHT];  // a state of 0: no entry
  auto read = [&](u32 base) {
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      u32 e = base + j * Team::SIZE + Team::rank();
      w[j] = e < row.length ? ends[e] : ~0u;
    }
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) state[j] = w[j] != ~0u ? __ldcg(g.state + w[j]) : 0;
  };
  for (u32 h = Team::rank(); h <= bound; h += Team::SIZE) bins[h] = 0;
  Team::sync();
  for (u32 base = 0; base < row.length; base += LOADS_IN_FLIGHT * Team::SIZE) {
    read(base);
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j)
      if (state[j]) atomicAdd(bins + min(estimate_of(state[j]), bound), 1);
  }
  Team::sync();
  u32 refined = h_index<Team>(bins, bound);
  if (refined == bound) return false;
  if (Team::rank() == 0) __stcg((u16*)(g.state + row.v), u16(refined));
  bool has_marked = false;
  for (u32 base = 0; base < row.length; base += LOADS_IN_FLIGHT * Team::SIZE) {
    if (row.length > LOADS_IN_FLIGHT * Team::SIZE) read(base);  // else it is all there still
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      u32 estimate = estimate_of(state[j]);
      if (estimate <= refined || (estimate > bound && !is_marked(state[j], round))) continue;
      if (!is_marked(state[j], round + 1)) mark(g.state + w[j], round + 1);
      has_marked = true;
    }
  }
  return has_marked;
}

// Degrees are the first estimates, and all vertices that may fall are marked. long_rows: their
// number, then the vertices.
__device__ __forceinline__ void begin(const Graph& g, u32 most, u32* long_rows) {
  for (u32 v = thread_number(); v < g.n; v += thread_count()) {
    u32 degree = u32(g.indptr[v + 1] - g.indptr[v]), estimate = min(degree, most);
    u32 odd = estimate > 1 ? mark_of(1) : 0xff;
    g.state[v] = estimate | 0xff << 16 | odd << 24;
    if (degree > LONG) long_rows[1 + atomicAdd(long_rows, 1)] = v;
  }
}

// All long rows, of which block b has numbers b, b + gridDim, and so on.
struct LongRows {
  const u32* vertex;
  u32 count;
  u32 own;  // this thread's first, read once: most graphs have no more. n: none

  __device__ LongRows(const u32* long_rows, u32 n) : vertex(long_rows + 1) {
    count = __ldcg(long_rows);
    own = at(0, n);
  }

  __device__ u32 at(u32 base, u32 n) const {
    u32 i = base + threadIdx.x * gridDim.x + blockIdx.x;
    return i < count ? __ldcg(vertex + i) : n;
  }
};

// Refine the block's long rows that are marked. All threads of the block.
__device__ __forceinline__ bool refine_long(const Graph& g, const LongRows& rows, u32 round,
                                            u32* bins) {
  __shared__ u32 marked[BLOCK], count;
  bool has_marked = false;
  for (u32 base = 0; base < rows.count; base += BLOCK * gridDim.x) {
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    u32 own = base ? rows.at(base, g.n) : rows.own;
    if (own < g.n && is_marked(__ldcg(g.state + own), round)) marked[atomicAdd(&count, 1)] = own;
    __syncthreads();
    for (u32 i = 0; i < count; ++i) {
      u32 v = marked[i];
      i64 first = g.indptr[v];
      Row row = {v, estimate_of(__ldcg(g.state + v)), u32(g.indptr[v + 1] - first), first};
      has_marked |= refine<Block>(g, row, round, bins);
    }
    __syncthreads();  // the list and the bins are for others now
  }
  return has_marked;
}

// What another lane has. Whole warps.
__device__ __forceinline__ Row row_of_lane(const Row& own, u32 lane) {
  return {__shfl_sync(ALL_LANES, own.v, lane), __shfl_sync(ALL_LANES, own.estimate, lane),
          __shfl_sync(ALL_LANES, own.length, lane), __shfl_sync(ALL_LANES, own.first, lane)};
}

// Refine the rows of the lanes, of length 0 for none, if they are not long. Whole warps.
__device__ __forceinline__ bool refine_rows(const Graph& g, const Row& own, u32 round, u32* bins) {
  constexpr u32 TEAM = SHORT / LOADS_IN_FLIGHT, TEAMS = 32 / TEAM;
  bool has_marked = false;
  u32 waiting = __ballot_sync(ALL_LANES, own.length && own.length <= SHORT);
  while (waiting) {
    u32 team = lane_id() / TEAM, lane = 32;  // team i takes the i-th that waits, if there is one
#pragma unroll
    for (u32 i = 0; i < TEAMS; ++i) {
      if (i == team && waiting) lane = __ffs(waiting) - 1;
      waiting &= waiting - 1;
    }
    Row row = row_of_lane(own, lane & 31);
    if (lane < 32) has_marked |= refine<Lanes<TEAM>>(g, row, round, bins + team * (SHORT + 1));
    __syncwarp();
  }
  waiting = __ballot_sync(ALL_LANES, own.length > SHORT && own.length <= LONG);
  for (; waiting; waiting &= waiting - 1)
    has_marked |= refine<Lanes<32>>(g, row_of_lane(own, __ffs(waiting) - 1), round, bins);
  return has_marked;
}

// Look at all vertices, each by a lane. Whole warps.
__device__ __forceinline__ bool refine_marked(const Graph& g, u32 round, u32* bins) {
  bool has_marked = false;
  u32 warps = u32(warp_count());
  for (u32 base = u32(warp_number()); base < g.n; base += 32 * warps) {
    Row own = {base + lane_id() * warps, 0, 0, 0};
    u32 state = own.v < g.n ? __ldcg(g.state + own.v) : 0;
    if (own.v < g.n && is_marked(state, round)) {
      own.estimate = estimate_of(state);
      own.first = g.indptr[own.v];
      own.length = u32(g.indptr[own.v + 1] - own.first);
    }
    has_marked |= refine_rows(g, own, round, bins);
  }
  return has_marked;
}

// core: i32[n], the result, if the last round with marks is no later than most_rounds; there are no
// more. state: u32[n]. long_rows: room for their number and for each.
extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    core_refine(const i64* indptr, const u32* indices, i64 n, i64 most, i64 most_rounds, i32* core,
                u32* state, u32* last, u32* long_rows) {
  extern __shared__ u32 bins[];
  Graph g = {indptr, indices, u32(n), state};
  begin(g, u32(most), long_rows);
  grid_sync();
  LongRows rows(long_rows, g.n);
  for (u32 round = 1; round <= most_rounds; ++round) {
    bool has_marked = refine_long(g, rows, round, bins);
    has_marked |= refine_marked(g, round, bins + warp_id() * WARP_BINS);
    if (__syncthreads_or(has_marked) && threadIdx.x == 0) __stcg(last, round + 1);
    grid_sync();
    if (read_for_block(last) <= round) break;
  }
  for (u32 v = thread_number(); v < g.n; v += thread_count())
    core[v] = i32(estimate_of(__ldcg(g.state + v)));
}
