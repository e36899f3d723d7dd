// An ego network as a matrix of bits, the teams of threads that work on one, and its edges: found
// in the graph's rows, or visited in the matrix.
//
// A team is a block, of which many work side by side, or, for the largest ego networks, the whole
// grid. The vertices of an owner's ego network are the places x of its row, 0 … d - 1. Its room
// holds
//
// root[d]     a forest over them (forest.cuh); listing.cu also marks in it what is peeled
// count[d]    core: degrees; truss: the round in which a vertex's edges are to be looked at; at the
//             end the sizes of trees
// bits[d, w]  core and truss: bit y of row x says whether the two are joined; w = ceil(d / 32)
//
// and lies in shared memory where it is small.
#pragma once
#include "algorithms/components/forest.cuh"
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/search.cuh"
#include "lpma/cuda/steps.cuh"

constexpr u32 TILE = 8;     // lanes that share a short row
constexpr i32 AT_ONCE = 4;  // words of a row that a lane reads together
enum Model { COMPONENT, CORE, TRUSS };

// WARPS: how many warps a block has at most, where its ego networks may have rows of a warp's words
// or more; 0 where none has.
template <i32 WARPS>
struct Block {
  static constexpr i32 LONG_WARPS = WARPS;
  static constexpr i32 PIECES = 1;  // of a row, which are worked on side by side

  __device__ i32 thread() const { return threadIdx.x; }
  __device__ i32 threads() const { return blockDim.x; }
  __device__ void sync() { __syncthreads(); }
  __device__ bool any(bool mine) { return __syncthreads_or(mine); }
};

struct Grid {
  static constexpr i32 LONG_WARPS = 16;
  static constexpr i32 PIECES = 8;  // the rows of hubs are most of an ego network

  Steps<u32> rounds;  // each counts whether something was found

  __device__ i32 thread() const { return i32(thread_number()); }
  __device__ i32 threads() const { return i32(gridDim.x * blockDim.x); }
  __device__ void sync() { grid_sync(); }
  __device__ bool any(bool mine) {
    bool ours = __syncthreads_or(mine);
    if (threadIdx.x == 0 && ours) *rounds.record() = 1;
    return rounds.end();
  }
};

struct Rows {
  const i64* slots_indptr;
  const u32* slots;
  const i64* lower_indptr;
  const u32* lower;
};

struct Ego {
  const u32* row;  // the ranks of its vertices, rising
  i32 d, words;
  i32* root;
  i32* count;
  u32* bits;

  __device__ u32* bits_of(i32 x) const { return bits + i64(x) * words; }
};

__device__ __forceinline__ void join(const Ego& ego, i32 x, i32 y) {
  atomicOr(ego.bits_of(x) + (y >> 5), 1u << (y & 31));
  atomicOr(ego.bits_of(y) + (x >> 5), 1u << (x & 31));
}

__device__ __forceinline__ void part(const Ego& ego, i32 x, i32 y) {
  atomicAnd(ego.bits_of(x) + (y >> 5), ~(1u << (y & 31)));
  atomicAnd(ego.bits_of(y) + (x >> 5), ~(1u << (x & 31)));
}

template <int MODEL, class Team>
__device__ __forceinline__ void clear(const Team& team, const Ego& ego) {
  for (i32 x = team.thread(); x < ego.d; x += team.threads()) {
    ego.root[x] = x;
    ego.count[x] = 0;
  }
  if (MODEL != COMPONENT)
    for (i64 i = team.thread(); i < i64(ego.d) * ego.words; i += team.threads()) ego.bits[i] = 0;
}

// Take in an edge of the ego network, y < x.
template <int MODEL>
__device__ __forceinline__ void found(const Ego& ego, i32 x, i32 y) {
  if (MODEL == COMPONENT) {
    unite(x, y, ego.root);
    return;
  }
  join(ego, x, y);
  if (MODEL == CORE) {
    atomicAdd(&ego.count[x], 1);
    atomicAdd(&ego.count[y], 1);
  }
}

// Find every edge once: what a vertex's lower row has in common with the owner's row before it. The
// shorter of the two is looked up in the longer, each lane from where its last search ended.
template <int MODEL, class Team>
__device__ __forceinline__ void list_edges(const Team& team, const Rows& g, const Ego& ego) {
  constexpr i32 LANES = Team::PIECES * TILE;
  for (i32 x = team.thread() / LANES; x < ego.d; x += team.threads() / LANES) {
    u32 v = ego.row[x];
    const u32* lower = g.lower + g.lower_indptr[v];
    i64 length = g.lower_indptr[v + 1] - g.lower_indptr[v], at = 0;
    if (length <= x) {
      for (i64 i = threadIdx.x % LANES; i < length && at < x; i += LANES) {
        at = lower_bound(ego.row, at, x, lower[i]);
        if (at < x && ego.row[at] == lower[i]) found<MODEL>(ego, x, i32(at));
      }
    } else {
      for (i32 y = threadIdx.x % LANES; y < x && at < length; y += LANES) {
        at = lower_bound(lower, at, length, ego.row[y]);
        if (at < length && lower[at] == ego.row[y]) found<MODEL>(ego, x, y);
      }
    }
  }
}

// A word of row x: the edges of x or, with `is_lower`, those to places before x.
__device__ __forceinline__ u32 word_of(const Ego& ego, i32 x, i32 word, bool is_lower) {
  if (word >= (is_lower ? (x >> 5) + 1 : ego.words)) return 0;
  u32 all = ego.bits_of(x)[word];
  return is_lower && word == x >> 5 ? all & ((1u << (x & 31)) - 1) : all;
}

// Call visit(x, y) for the bits y of the rows x that are `wanted`; with `is_lower` only those
// before x. TILE lanes take a row, or a warp each piece of a long one.
template <class Team, class Wanted, class Visit>
__device__ __forceinline__ void each_edge(const Team& team, const Ego& ego, bool is_lower,
                                          Wanted wanted, Visit visit) {
  i32 lanes = ego.words >= 32 ? 32 : TILE;
  i32 share = (ego.words + Team::PIECES - 1) / Team::PIECES;
  for (i32 i = team.thread() / lanes; i < ego.d * Team::PIECES; i += team.threads() / lanes) {
    i32 x = i / Team::PIECES, first = i % Team::PIECES * share;
    if (!wanted(x)) continue;
    i32 last = min(first + share, is_lower ? (x >> 5) + 1 : ego.words);
    for (i32 start = first + threadIdx.x % lanes; start < last; start += AT_ONCE * lanes) {
      u32 held[AT_ONCE];  // read together: a long row mostly waits for memory
#pragma unroll
      for (i32 j = 0; j < AT_ONCE; ++j) {
        i32 w = start + j * lanes;
        held[j] = w < last ? word_of(ego, x, w, is_lower) : 0;
      }
#pragma unroll
      for (i32 j = 0; j < AT_ONCE; ++j)
        for (u32 rest = held[j]; rest; rest &= rest - 1)
          visit(x, 32 * (start + j * lanes) + __ffs(rest) - 1);
    }
  }
}

// The same for visits that take long, in rows of a warp's words or more: a warp takes 32 words of a
// row at a time, and its lanes take the bits in turn, however these are spread.
template <class Team, class Wanted, class Visit>
__device__ __forceinline__ void each_edge_in_turn(const Team& team, const Ego& ego, bool is_lower,
                                                  Wanted wanted, Visit visit) {
  __shared__ u16 places[Team::LONG_WARPS][32 * 32];
  u16* place = places[warp_id()];
  i32 lane = lane_id(), spans = (ego.words + 31) / 32;
  for (i32 i = team.thread() / 32; i < ego.d * spans; i += team.threads() / 32) {
    i32 x = i / spans, first = i % spans * 32;
    if (!__shfl_sync(ALL_LANES, wanted(x), 0)) continue;  // others may be changing it
    u32 rest = word_of(ego, x, first + lane, is_lower);
    i32 upto = warp_inclusive(__popc(rest)), all = __shfl_sync(ALL_LANES, upto, 31);
    for (i32 at = upto - __popc(rest); rest; rest &= rest - 1)
      place[at++] = 32 * lane + __ffs(rest) - 1;
    __syncwarp();
    for (i32 at = lane; at < all; at += 32) visit(x, 32 * first + place[at]);
    __syncwarp();
  }
}
