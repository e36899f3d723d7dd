// Core numbers by peeling, all levels in one cooperative kernel.
//
// Idea: three kinds of step, each by as many warps as there is work for.
//
// PEEL   The entries of the frontier each take one from their vertex's degree; a vertex that falls
//        to the level joins the next frontier. One atomic an entry tells everything: its old value
//        is level + 1 exactly once a vertex. Degrees go on falling below the level, where they only
//        mean "dead": core numbers are kept apart, and nothing is repaired.
// SCAN   When the level is done, the vertices near it, of degree below `limit`, are looked at.
//        Those of degree `guess` (the next level, nearly always) are its frontier; otherwise the
//        least degree found is the next guess, so that empty levels are skipped.
// SPLIT  When no near vertex is alive, the living far ones are looked at and compacted; those less
//        than WINDOW above the level become near. A far vertex that falls below `limit` during
//        PEEL becomes near at once (its old degree is `limit`, exactly once).
//
// So a level costs a look at few vertices, and all vertices are looked at once in WINDOW levels.
//
// One queue holds frontiers as tasks, of CHUNK entries of a row at most, so that a hub is the work of
// many warps. It never wraps: every vertex is queued once.
//
// Encoding: a task is first entry << 8 | number of entries.
//
// Steps are those of lpma/cuda/steps.cuh.
//
// Requires: n + m / CHUNK < 2^32.
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr u32 BLOCK = 1024;
constexpr u32 CHUNK = 128;  // entries of a task: fits 8 bits
constexpr u32 LOADS_IN_FLIGHT = CHUNK / 32;  // loads a lane has under way
constexpr i32 WINDOW = 16;
constexpr u32 WIDE = 4;  // tasks a warp
constexpr i32 NOBODY = 0x7fffffff;  // the least degree among none

enum Step : u32 { PEEL, SCAN, SPLIT, DONE };

struct Graph {
  const i64* __restrict__ indptr;
  const u32* __restrict__ indices;
  u32 n;
  i32* degree;  // neighbours that are not peeled yet
  i32* core;
  u64* queue;  // of tasks
  u32* near;  // u32[n]
  u32* far;  // u32[2 n]: the list, and the one it is compacted to

  __device__ __forceinline__ u32* far_list(u32 side) const { return far + u64(side) * n; }
};

// What a step found. All zero means nothing: the least degree is kept as NOBODY - degree.
struct Counts {
  u32 tasks;
  u32 near, far;
  u32 nearness;
};

// The same in all threads of the grid.
struct State {
  u32 step;
  i32 level, limit, guess;
  u64 base;  // the frontier is tasks base … base + tasks - 1 of the queue
  u32 tasks;
  u32 near, far;  // the lengths of the lists
  u32 side;  // the far list is far_list(side)
};

// What comes after a step that found `counts`.
__device__ __forceinline__ void advance(State& s, const Counts& c) {
  i32 least = NOBODY - i32(c.nearness);
  u32 before = s.tasks;
  s.base += before;
  s.tasks = c.tasks;
  switch (s.step) {
    case PEEL:
      s.near += c.near;
      s.step = s.tasks ? PEEL : SCAN;
      s.guess = s.level + 1;
      break;
    case SCAN:
      if (s.tasks) {
        s.level = s.guess;
        s.step = PEEL;
      } else if (least != NOBODY) {
        s.guess = least;
      } else {
        s.step = SPLIT;
        s.limit = s.level + 1 + WINDOW;
      }
      break;
    case SPLIT:
      s.near = c.near;
      s.far = c.far;
      s.side ^= 1;
      s.guess = least;
      if (s.near) {
        s.step = SCAN;
      } else if (least != NOBODY) {
        s.limit = least + WINDOW;
      } else {
        s.step = DONE;
      }
  }
}

// The threads that do a step: `warps` warps, of which this thread's has number `warp`.
struct Team {
  u32 warp, warps;
};

// Where a step appends. The least degree is noted block by block, in shared memory.
struct Out {
  Counts* counts;
  u32* nearness;
};

// Queue the rows of the vertices that lanes `found`; a row is entries first … end - 1. An empty row
// is a task too: whoever scans takes tasks as a sign that a vertex was found. Whole warps.
__device__ __forceinline__ void append_rows(const Graph& g, const State& s, const Out& out,
                                            bool found, i64 first, i64 end) {
  u32 length = found ? u32(end - first) : 0;
  u32 pieces = found ? max(1u, pieces_of<CHUNK>(length)) : 0;
  u32 place = places_of_lane(pieces, &out.counts->tasks);
  u64 begin = s.base + s.tasks;  // behind the frontier being peeled; tasks is 0 in a SCAN
  for (u32 i = 0; i < pieces; ++i)
    g.queue[begin + place + i] = u64(first + i64(i) * CHUNK) << 8 | min(CHUNK, length - i * CHUNK);
}

__device__ __forceinline__ void note_least(const Out& out, i32 least) {
  least = lanes_min(least);
  if (lane_id() == 0 && least != NOBODY) atomicMax(out.nearness, u32(NOBODY - least));
}

// What happens to the vertex v of an entry, which had `before` neighbours left; 0 for no entry.
// Whole warps.
__device__ __forceinline__ void settle(const Graph& g, const State& s, const Out& out, u32 v,
                                       i32 before) {
  bool found = before == s.level + 1;
  if (__any_sync(ALL_LANES, found)) {
    if (found) g.core[v] = s.level;
    append_rows(g, s, out, found, found ? g.indptr[v] : 0, found ? g.indptr[v + 1] : 0);
  }
  append_of_lanes(before == s.limit && !found, v, g.near + s.near, &out.counts->near);
}

// PEEL, a task a warp. In a wide frontier, where the time is in the memory, most ends
// are dead, and a look at the degree saves the atomic: the cache may show it too high, never too
// low.
__device__ __forceinline__ void peel(const Graph& g, const State& s, const Team& team,
                                     const Out& out) {
  bool is_wide = s.tasks > WIDE * team.warps;
  for (u32 i = team.warp; i < s.tasks; i += team.warps) {
    u64 task = __ldcg(g.queue + s.base + i);
    const u32* row = g.indices + (task >> 8);
    u32 count = task & 255, v[LOADS_IN_FLIGHT];
    i32 before[LOADS_IN_FLIGHT];
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      u32 e = 32 * j + lane_id();
      v[j] = e < count ? row[e] : 0;
    }
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      bool is_entry = 32 * j + lane_id() < count;
      if (is_wide) is_entry = is_entry && g.degree[v[j]] > s.level;
      before[j] = is_entry ? atomicSub(g.degree + v[j], 1) : 0;
    }
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j)
      if (32 * j < count) settle(g, s, out, v[j], before[j]);
  }
}

// Call use(v, degree) for every listed vertex, by whole warps; degree 0 for none.
template <typename Use>
__device__ __forceinline__ void for_listed(const Graph& g, const u32* list, u32 count,
                                           const Team& team, Use use) {
  for (u64 first = u64(team.warp) * CHUNK; first < count; first += u64(team.warps) * CHUNK) {
    u32 v[LOADS_IN_FLIGHT];
    i32 degree[LOADS_IN_FLIGHT];
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      u64 i = first + 32 * j + lane_id();
      v[j] = i < count ? __ldcg(list + i) : 0;
    }
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      u64 i = first + 32 * j + lane_id();
      degree[j] = i < count ? __ldcg(g.degree + v[j]) : 0;
    }
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) use(v[j], degree[j]);
  }
}

__device__ __forceinline__ void scan(const Graph& g, const State& s, const Team& team,
                                     const Out& out) {
  i32 least = NOBODY;
  for_listed(g, g.near, s.near, team, [&](u32 v, i32 degree) {
    if (degree > s.level) least = min(least, degree);
    bool found = degree == s.guess;
    if (!__any_sync(ALL_LANES, found)) return;
    if (found) g.core[v] = s.guess;
    append_rows(g, s, out, found, found ? g.indptr[v] : 0, found ? g.indptr[v + 1] : 0);
  });
  note_least(out, least);
}

// The far vertex v becomes near, goes to the other far list, or, if dead, to neither.
__device__ __forceinline__ void split_one(const Graph& g, const State& s, const Out& out, u32 v,
                                          i32 degree, i32& least) {
  bool alive = degree > s.level;
  if (alive) least = min(least, degree);
  append_of_lanes(alive && degree < s.limit, v, g.near, &out.counts->near);
  append_of_lanes(alive && degree >= s.limit, v, g.far_list(s.side ^ 1), &out.counts->far);
}

__device__ __forceinline__ void split(const Graph& g, const State& s, const Team& team,
                                      const Out& out) {
  i32 least = NOBODY;
  for_listed(g, g.far_list(s.side), s.far, team,
             [&](u32 v, i32 degree) { split_one(g, s, out, v, degree, least); });
  note_least(out, least);
}

// The first SPLIT, of all vertices. It also writes their degrees, unless they are given.
__device__ __forceinline__ void split_all(const Graph& g, const State& s, bool is_given,
                                          const Team& team, const Out& out) {
  i32 least = NOBODY;
  for (u64 first = u64(team.warp) * 32; first < g.n; first += u64(team.warps) * 32) {
    u64 v = first + lane_id();
    i32 degree = 0;
    if (v < g.n) degree = is_given ? g.degree[v] : i32(g.indptr[v + 1] - g.indptr[v]);
    if (v < g.n) g.degree[v] = degree, g.core[v] = 0;
    split_one(g, s, out, u32(v), degree, least);
  }
  note_least(out, least);
}

// degree: written; read if it is_given. core: i32[n], the result. room: 3 n vertices. counts:
// three, clear. refined: null, or the last round of refine.cu: if it is no later than
// most_rounds, the result is there already.
extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    core_cooperative(const i64* indptr, const u32* indices, i64 n, i64 is_given, i64 most_rounds,
                     const u32* refined, i32* degree, i32* core, u64* queue, u32* room,
                     Counts* counts) {
  if (refined && *refined <= most_rounds) return;
  __shared__ u32 nearness;
  Graph g = {indptr, indices, u32(n), degree, core, queue, room, room + n};
  Team team = {blockIdx.x * (BLOCK / 32) + warp_id(), gridDim.x * (BLOCK / 32)};
  State s = {SPLIT, 0, 1 + WINDOW, 0, 0, 0, 0, 0, 1};
  Steps<Counts> steps = {counts};
  if (threadIdx.x == 0) nearness = 0;
  __syncthreads();
  for (bool first = true;; first = false) {
    Out out = {steps.record(), &nearness};
    if (first)
      split_all(g, s, is_given, team, out);
    else if (s.step == PEEL)
      peel(g, s, team, out);
    else if (s.step == SCAN)
      scan(g, s, team, out);
    else
      split(g, s, team, out);
    __syncthreads();
    if (threadIdx.x == 0 && nearness) {
      atomicMax(&steps.record()->nearness, nearness);
      nearness = 0;
    }
    advance(s, steps.end());
    if (s.step == DONE) return;
  }
}
