// Breadth-first search, direction-optimising, all levels in one cooperative launch.
//
// Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.
// algorithms/bfs/__init__.py describes the method and the rule for changing direction.
//
// Encoding: the frontier is a stretch of a queue. An item is piece << 32 | vertex: a piece of the
// vertex's row, of PIECE entries at most, so that a hub is many items. A warp takes up to 32 items
// and deals their entries to its lanes. hops[v] is -1 until v is reached. A vertex is enqueued by
// the thread whose compare-and-swap writes its level: at most once, so the queue never needs more
// than n + m / PIECE items.
//
// Bottom-up reads levels themselves instead of a bitmap: -1 and the level being written both differ
// from the one it looks for. A row that a lane does not finish soon is finished by its whole warp.
//
// Steps: work goes in steps with one barrier each: a level in either direction, or gathering the
// last level found bottom-up into the queue. What a step counts is in record step % 3. It is added
// to in this step, read by all after the barrier, and zeroed during the step before its next use,
// when all have read it. All blocks decide alike from the same record.
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/lanes.cuh"

constexpr u32 PIECE = 256;
constexpr u64 ALPHA = 15, BETA = 18;  // as in cpu.py
constexpr u32 SOON = 8;               // entries a lane looks at by itself

struct Step {
  u64 items;  // enqueued
  u64 found;  // vertices reached
  u64 edges;  // edges that leave these
};

struct Graph {
  const i64* indptr;
  const u32* indices;
  const i64* reverse_indptr;
  const u32* reverse;
  i64 n;
};

// Enqueue the rows of the lanes' new vertices behind the items already in `tail`; for one whole
// warp.
__device__ void enqueue(const Graph& g, bool is_new, u32 v, u64* tail, Step* step) {
  u64 degree = is_new ? g.indptr[v + 1] - g.indptr[v] : 0;
  u32 pieces = u32((degree + PIECE - 1) / PIECE);
  u32 through = warp_inclusive(pieces);
  u32 all = __shfl_sync(ALL_LANES, through, 31);
  u64 place = 0;
  if (lane_id() == 0 && all) place = atomicAdd(&step->items, u64(all));
  place = __shfl_sync(ALL_LANES, place, 0) + through - pieces;
  for (u32 i = 0; i < pieces; ++i) tail[place + i] = u64(i) << 32 | v;
}

__device__ void count_found(u64 found, u64 edges, Step* step) {
  found = warp_sum(found);
  edges = warp_sum(edges);
  if (lane_id() == 0 && found) {
    atomicAdd(&step->found, found);
    atomicAdd(&step->edges, edges);
  }
}

// Reach vertices along the entries of items queue[begin … end - 1]. New items go to queue[end …].
__device__ void expand(const Graph& g, u64* queue, u64 begin, u64 end, i32 level, i32* hops,
                       Step* step, u64 warp, u64 warps) {
  u64 each = min(u64(32), max(u64(1), (end - begin + warps - 1) / warps));
  u64 found = 0, edges = 0;
  for (u64 first = begin + warp * each; first < end; first += warps * each) {
    u64 item = first + lane_id();
    bool has_item = lane_id() < each && item < end;
    i64 start = 0;
    u32 length = 0;
    if (has_item) {
      u64 what = __ldcg(queue + item);
      u32 u = u32(what);
      start = g.indptr[u] + i64(what >> 32) * PIECE;
      length = u32(min(i64(PIECE), g.indptr[u + 1] - start));
    }
    u32 through = warp_inclusive(length);
    u32 all = __shfl_sync(ALL_LANES, through, 31);
    for (u32 base = 0; base < all; base += 32) {
      u32 entry = base + lane_id();
      u32 owner = 0;  // the number of items that end at `entry` or before; 31 beyond the last
      for (u32 by = 16; by; by >>= 1)
        if (__shfl_sync(ALL_LANES, through, owner + by - 1) <= entry) owner += by;
      u32 before = __shfl_sync(ALL_LANES, through - length, owner);
      i64 from = __shfl_sync(ALL_LANES, start, owner);
      bool is_new = false;
      u32 v = 0;
      if (entry < all) {
        v = g.indices[from + (entry - before)];
        is_new = __ldcg(hops + v) < 0 && atomicCAS(hops + v, -1, level) == -1;
      }
      if (is_new) {
        ++found;
        edges += g.indptr[v + 1] - g.indptr[v];
      }
      enqueue(g, is_new, v, queue + end, step);
    }
  }
  count_found(found, edges, step);
}

// Whether one of reverse[begin … end - 1] is on `level`. The whole warp has the same begin and end.
__device__ bool warp_finds(const Graph& g, i64 begin, i64 end, i32 level, const i32* hops) {
  for (i64 base = begin; base < end; base += 128) {
    bool is_there = false;
    for (u32 i = 0; i < 4; ++i) {  // four loads of each lane under way at once
      i64 e = base + 32 * i + lane_id();
      is_there |= e < end && __ldcg(hops + g.reverse[e]) == level;
    }
    if (__any_sync(ALL_LANES, is_there)) return true;
  }
  return false;
}

// Reach the vertices that have an in-neighbour on the level before.
__device__ void look_back(const Graph& g, i32 level, i32* hops, Step* step, u64 warp, u64 warps) {
  u64 found = 0, edges = 0;
  for (i64 first = warp * 32; first < g.n; first += warps * 32) {
    i64 v = first + lane_id();
    bool is_wanted = v < g.n && __ldcg(hops + v) < 0;
    i64 e = is_wanted ? g.reverse_indptr[v] : 0;
    i64 end = is_wanted ? g.reverse_indptr[v + 1] : 0;
    bool is_found = false;
    for (u32 i = 0; i < SOON && e < end && !is_found; ++i, ++e)
      is_found = __ldcg(hops + g.reverse[e]) == level - 1;
    __syncwarp();
    u32 unfinished = __ballot_sync(ALL_LANES, !is_found && e < end);
    while (unfinished) {
      u32 lane = __ffs(unfinished) - 1;
      unfinished &= unfinished - 1;
      i64 rest = __shfl_sync(ALL_LANES, e, lane);
      bool is_there = warp_finds(g, rest, __shfl_sync(ALL_LANES, end, lane), level - 1, hops);
      if (lane_id() == lane) is_found = is_there;
    }
    if (is_found) {
      hops[v] = level;
      ++found;
      edges += g.indptr[v + 1] - g.indptr[v];
    }
  }
  count_found(found, edges, step);
}

// Enqueue the vertices of a level.
__device__ void gather(const Graph& g, i32 level, const i32* hops, u64* tail, Step* step,
                       u64 warp, u64 warps) {
  for (i64 first = warp * 32; first < g.n; first += warps * 32) {
    i64 v = first + lane_id();
    bool is_new = v < g.n && __ldcg(hops + v) == level;
    if (__any_sync(ALL_LANES, is_new)) enqueue(g, is_new, u32(v), tail, step);
  }
}

enum What { TOP_DOWN, BOTTOM_UP, GATHER };

extern "C" __global__ void search(const i64* indptr, const u32* indices, const i64* reverse_indptr,
                                  const u32* reverse, i64 n, i64 m, i64 can_go_back, i64 source,
                                  i32* hops, u64* queue, Step* steps) {
  Graph g = {indptr, indices, reverse_indptr, reverse, n};
  u64 warp = warp_number(), warps = warp_count();

  u64 degree = indptr[source + 1] - indptr[source];
  u64 begin = 0, end = (degree + PIECE - 1) / PIECE;
  for (u64 i = thread_number(); i < end; i += warps * 32) queue[i] = i << 32 | u64(source);
  if (thread_number() == 0) hops[source] = 0;
  grid_sync();

  u64 unseen = m - degree;  // edges of vertices not yet reached
  u64 size = 1;             // of the frontier
  i32 level = 0;
  What what = can_go_back && degree > unseen / ALPHA ? BOTTOM_UP : TOP_DOWN;
  for (u32 number = 0;; ++number) {
    Step* step = steps + number % 3;
    if (thread_number() == 0) steps[(number + 1) % 3] = {0, 0, 0};
    if (what != GATHER) ++level;
    if (what == TOP_DOWN)
      expand(g, queue, begin, end, level, hops, step, warp, warps);
    else if (what == BOTTOM_UP)
      look_back(g, level, hops, step, warp, warps);
    else
      gather(g, level, hops, queue + end, step, warp, warps);
    grid_sync();
    u64 items = __ldcg(&step->items), found = __ldcg(&step->found), edges = __ldcg(&step->edges);
    if (what != GATHER && found == 0) return;
    if (what != BOTTOM_UP) {
      begin = end;
      end += items;
    }
    unseen -= edges;
    if (what == TOP_DOWN)
      what = can_go_back && edges > unseen / ALPHA ? BOTTOM_UP : TOP_DOWN;
    else if (what == BOTTOM_UP)
      what = found <= size && found < max(u64(1), u64(n) / BETA) ? GATHER : BOTTOM_UP;
    else
      what = TOP_DOWN;
    if (found) size = found;  // gathering finds nothing
  }
}
