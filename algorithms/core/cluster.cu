// Core numbers of a small graph by peeling, by one cluster of blocks and in their shared memory.
//
// Idea: what peeling a small graph takes is latency: hundreds of rounds in which hardly any vertex
// takes part. So vertices are dealt out to the blocks of a cluster: block v % CLUSTER has the
// degree of v in shared memory, which all of them reach. And there are no rounds: within a level
// the order does not matter, so a block peels what it finds at once (tasks.cuh), and there are two
// barriers a level, of the cluster:
//
// SCAN   Each block looks at its degrees. Vertices of degree `guess` (the next level, nearly
//        always) are its first tasks; if no block has one, the least of all is the next guess.
// PEEL   The entries of a task each take one from their vertex's degree. The old value is
//        level + 1 exactly once a vertex: whoever sees it has found the vertex, and its row is a
//        task of the block. Degrees go on falling below the level, where they only mean "dead".
//
// A block's list of tasks does not wrap. A vertex found when the list is full is marked as *late*
// in the sign of its degree, and becomes a task of its own block when all lists are done.
//
// Requires: compute capability 9.0; a plain launch of CLUSTER blocks, each with dynamic shared
// memory for ceil(n / CLUSTER) degrees; fewer than 2^24 entries.
#include "algorithms/core/tasks.cuh"
#include "lpma/cuda/cluster.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

constexpr u32 CLUSTER = 8, BLOCK = 1024;  // cuda.py has them too
constexpr u32 TOGETHER = CHUNK / 32;     // loads a lane has under way
constexpr u32 LATE = 1u << 31;
constexpr i32 NOBODY = 0x7fffffff;  // the least degree among none

struct Graph {
  const i64* __restrict__ indptr;
  const u32* __restrict__ indices;
  u32 n;
  i32* core;
  u32 room;  // places of a list that are used
};

// What a block tells all others at a barrier.
struct Told {
  i32 least;  // the least degree above the level
  u32 found;  // whether there is a task, or a late vertex
};

struct Shared {
  Tasks tasks;
  Told told[2][CLUSTER];  // at barriers in turns: one may be written while the other is still read
  i32 least;
  u32 late;  // whether this block has marked a vertex
};

// The degree of v, in this block's shared memory or another's.
__device__ __forceinline__ i32* degree_of(i32* degree, u32 v) {
  return in_block(degree + v / CLUSTER, v % CLUSTER);
}

// Vertices that lanes have found, v[j] if `found` has bit j, are peeled by this block, or else
// late. Whole warps.
template <u32 MOST>
__device__ __forceinline__ void find(const Graph& g, Shared& shared, i32* degree, i32 level,
                                     u32 found, const u32 (&v)[MOST]) {
  u32 first[MOST], length[MOST];
#pragma unroll
  for (u32 j = 0; j < MOST; ++j) {
    bool is = found >> j & 1;
    first[j] = is ? u32(g.indptr[v[j]]) : 0;
    length[j] = is ? u32(g.indptr[v[j] + 1]) - first[j] : 0;
    if (is) g.core[v[j]] = level;
  }
  u32 late = found & ~shared.tasks.append(first, length, g.room);
  if (!late) return;
#pragma unroll
  for (u32 j = 0; j < MOST; ++j)
    if (late >> j & 1) atomicOr((u32*)degree_of(degree, v[j]), LATE);
  shared.late = 1;
}

// The entries of the lanes' tasks, 0 for none, are dealt out to the lanes. Whole warps.
__device__ __forceinline__ void peel(const Graph& g, Shared& shared, i32* degree, i32 level,
                                     u32 task) {
  u32 holders = __ballot_sync(ALL_LANES, task);
  bool is_one = !(holders & (holders - 1));  // then entry e is at `start` + e
  u32 length = task & 255, upto = length;
  u32 total = __shfl_sync(ALL_LANES, length, __ffs(holders) - 1);
  u32 start = __shfl_sync(ALL_LANES, task >> 8, __ffs(holders) - 1);
  if (!is_one) {
    upto = warp_inclusive(length);
    total = __shfl_sync(ALL_LANES, upto, 31);
    start = (task >> 8) - (upto - length);  // entry e of all is at the start of its lane + e
  }
  for (u32 base = 0; base < total; base += CHUNK) {
    u32 v[TOGETHER], found = 0;
#pragma unroll
    for (u32 j = 0; j < TOGETHER; ++j) {
      u32 e = base + 32 * j + lane_id(), from = start;
      if (!is_one) {
        u32 owner = 0;  // the number of lanes whose tasks end at `e` or before; 31 beyond the last
        for (u32 by = 16; by; by >>= 1)
          if (__shfl_sync(ALL_LANES, upto, owner + by - 1) <= e) owner += by;
        from = __shfl_sync(ALL_LANES, start, owner);
      }
      v[j] = e < total ? g.indices[from + e] : ~0u;
    }
#pragma unroll
    for (u32 j = 0; j < TOGETHER; ++j)
      if (v[j] != ~0u && atomicSub(degree_of(degree, v[j]), 1) == level + 1) found |= 1u << j;
    if (__any_sync(ALL_LANES, found)) find(g, shared, degree, level, found, v);
  }
}

// Work off the list of tasks. All warps of the block.
__device__ __forceinline__ void peel_all(const Graph& g, Shared& shared, i32* degree, i32 level) {
  Tickets mine;
  u32 task;
  while (shared.tasks.next(mine, task)) peel(g, shared, degree, level, task);
}

// Look at the block's degrees: vertices of degree `guess` are tasks, and the least degree above the
// level is noted.
__device__ __forceinline__ void scan(const Graph& g, Shared& shared, i32* degree, i32 level,
                                     i32 guess) {
  i32 least = NOBODY;
  u32 rank = cluster_rank(), own = (g.n + CLUSTER - 1 - rank) / CLUSTER;
  for (u32 i = threadIdx.x; i - lane_id() < own; i += BLOCK) {
    i32 d = i < own ? degree[i] : 0;
    if (d > level) least = min(least, d);
    bool found = i < own && d == guess;
    u32 v[1] = {i * CLUSTER + rank};
    if (__any_sync(ALL_LANES, found)) find(g, shared, degree, guess, found, v);
  }
  least = lanes_min(least);
  if (lane_id() == 0 && least != NOBODY) atomicMin(&shared.least, least);
}

// The block's late vertices become tasks.
__device__ __forceinline__ void take_late(const Graph& g, Shared& shared, i32* degree, i32 level) {
  u32 rank = cluster_rank(), own = (g.n + CLUSTER - 1 - rank) / CLUSTER;
  for (u32 i = threadIdx.x; i - lane_id() < own; i += BLOCK) {
    bool is_late = i < own && degree[i] < 0;
    if (is_late) atomicAnd((u32*)degree + i, ~LATE);
    u32 v[1] = {i * CLUSTER + rank};
    if (__any_sync(ALL_LANES, is_late)) find(g, shared, degree, level, is_late, v);
  }
}

// A barrier of the cluster, at which each block tells all others something: the least of all, and
// whether any has found something. `turn` is 0 or 1, and changes with each call.
__device__ __forceinline__ Told tell_all(Shared& shared, u32& turn, Told mine) {
  turn ^= 1;
  if (threadIdx.x < CLUSTER) *in_block(&shared.told[turn][cluster_rank()], threadIdx.x) = mine;
  cluster_sync();
  Told all = {NOBODY, 0};
  for (u32 i = 0; i < CLUSTER; ++i) {
    all.least = min(all.least, shared.told[turn][i].least);
    all.found |= shared.told[turn][i].found;
  }
  return all;
}

// The block's list is empty, and nothing is noted. All threads.
__device__ __forceinline__ void begin_list(Shared& shared) {
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.tasks.reset();
    shared.least = NOBODY;
    shared.late = 0;
  }
  __syncthreads();
}

// core: i32[n], the result.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(BLOCK, 1)
    core_cluster(const i64* indptr, const u32* indices, i64 n, i32* core, i64 room) {
  extern __shared__ i32 degree[];
  __shared__ Shared shared;
  Graph g = {indptr, indices, u32(n), core, u32(room)};
  for (u32 i = threadIdx.x; i < PLACES; i += BLOCK) shared.tasks.place[i] = 0;
  for (u32 i = threadIdx.x, v; (v = i * CLUSTER + cluster_rank()) < g.n; i += BLOCK) {
    degree[i] = i32(indptr[v + 1] - indptr[v]);
    core[v] = 0;
  }
  cluster_sync();  // all blocks run: their shared memory may be written
  i32 level = 0, guess = 1;
  u32 turn = 0;
  for (;;) {
    begin_list(shared);
    scan(g, shared, degree, level, guess);
    __syncthreads();
    Told told = tell_all(shared, turn, {shared.least, shared.tasks.reserved});
    if (!told.found) {
      if (told.least == NOBODY) return;
      guess = told.least;
      continue;
    }
    level = guess;
    for (;;) {
      peel_all(g, shared, degree, level);
      __syncthreads();
      if (!tell_all(shared, turn, {NOBODY, shared.late}).found) break;
      begin_list(shared);
      take_late(g, shared, degree, level);
      __syncthreads();
    }
    guess = level + 1;
  }
}

#endif
