// Breadth-first search, direction-optimising, all levels in one cooperative launch.
//
// Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012.
// algorithms/bfs/__init__.py describes the method and the rule for changing direction.
//
// Encoding: the frontier is a stretch of a queue of rows in pieces (lpma/cuda/work_queue.cuh).
// hops[v] is -1 until v is reached. A vertex is enqueued by the thread whose compare-and-swap writes
// its level: at most once.
//
// Most edges examined top-down lead to visited vertices. Whether their end is reached is first asked
// of a bitmap, which the caches hold where they do not hold hops. A bit is set after the level is
// written, and a cache may show it late: 0 says nothing, and the compare-and-swap decides.
//
// Bottom-up reads levels themselves instead of a bitmap: -1 and the level being written both differ
// from the one it looks for. A row that a lane does not finish soon is finished by its whole warp.
//
// A step (lpma/cuda/steps.cuh) is a level in either direction, or gathering the last level found
// bottom-up into the queue.
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr u64 ALPHA = 15, BETA = 18;  // Beamer's
constexpr u32 SOON = 8;               // entries a lane looks at by itself
constexpr u32 LOADS_IN_FLIGHT = 4;    // of a lane: entries that it reads together

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
  i32* hops;
  u32* reached;  // a bit a vertex: 1 only where hops >= 0
};

__device__ void count_found(u64 found, u64 edges, Step* step) {
  found = warp_sum(found);
  edges = warp_sum(edges);
  if (lane_id() == 0 && found) {
    atomicAdd(&step->found, found);
    atomicAdd(&step->edges, edges);
  }
}

// Reach the ends v of the lanes' entries; entry j of a lane is one if `mask` has bit j. For one
// whole warp.
__device__ __forceinline__ void reach(const Graph& g, const u32* v, u32 mask, i32 level, u64* tail,
                                      Step* step, u64& found, u64& edges) {
  u32 words[LOADS_IN_FLIGHT];
#pragma unroll
  for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j)
    words[j] = mask >> j & 1 ? g.reached[v[j] >> 5] : ALL_LANES;
#pragma unroll
  for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
    u32 bit = 1u << (v[j] & 31);
    bool is_new = !(words[j] & bit) && __ldcg(g.hops + v[j]) < 0 &&
                  atomicCAS(g.hops + v[j], -1, level) == -1;
    if (!__any_sync(ALL_LANES, is_new)) continue;
    if (is_new) {
      atomicOr(g.reached + (v[j] >> 5), bit);
      ++found;
      edges += g.indptr[v[j] + 1] - g.indptr[v[j]];
    }
    enqueue_rows(g.indptr, is_new, v[j], tail, &step->items);
  }
}

// Reach vertices along the entries of items queue[begin … end - 1]. New items go to queue[end …].
__device__ void expand(const Graph& g, u64* queue, u64 begin, u64 end, i32 level, Step* step) {
  u64 found = 0, edges = 0;
  auto own_of = [&](u64 item) { return piece_of(g.indptr, u32(item), item >> 32); };
  auto visit = [&](const WarpBatch& batch, const Piece&) {
    u32 v[LOADS_IN_FLIGHT], mask = 0;
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      Entry entry = batch.entry(j);
      v[j] = entry.is_one ? g.indices[entry.at] : 0;
      mask |= u32(entry.is_one) << j;
    }
    reach(g, v, mask, level, queue + end, step, found, edges);
  };
  for_each_entry<LOADS_IN_FLIGHT>(queue, begin, end, own_of, visit);
  count_found(found, edges, step);
}

// Whether one of reverse[begin … end - 1] is on `level`. The whole warp has the same begin and end.
__device__ bool warp_finds(const Graph& g, i64 begin, i64 end, i32 level) {
  for (i64 base = begin; base < end; base += 128) {
    bool is_there = false;
    for (u32 i = 0; i < 4; ++i) {  // four loads of each lane under way at once
      i64 e = base + 32 * i + lane_id();
      is_there |= e < end && __ldcg(g.hops + g.reverse[e]) == level;
    }
    if (__any_sync(ALL_LANES, is_there)) return true;
  }
  return false;
}

// Reach the vertices that have an in-neighbour on the level before.
__device__ void look_back(const Graph& g, i32 level, Step* step, u64 warp, u64 warps) {
  u64 found = 0, edges = 0;
  for (i64 first = warp * 32; first < g.n; first += warps * 32) {
    i64 v = first + lane_id();
    bool is_wanted = v < g.n && __ldcg(g.hops + v) < 0;
    i64 e = is_wanted ? g.reverse_indptr[v] : 0;
    i64 end = is_wanted ? g.reverse_indptr[v + 1] : 0;
    bool is_found = false;
    for (u32 i = 0; i < SOON && e < end && !is_found; ++i, ++e)
      is_found = __ldcg(g.hops + g.reverse[e]) == level - 1;
    __syncwarp();
    u32 unfinished = __ballot_sync(ALL_LANES, !is_found && e < end);
    while (unfinished) {
      u32 lane = __ffs(unfinished) - 1;
      unfinished &= unfinished - 1;
      i64 rest = __shfl_sync(ALL_LANES, e, lane);
      bool is_there = warp_finds(g, rest, __shfl_sync(ALL_LANES, end, lane), level - 1);
      if (lane_id() == lane) is_found = is_there;
    }
    if (is_found) {
      g.hops[v] = level;
      ++found;
      edges += g.indptr[v + 1] - g.indptr[v];
    }
    u32 bits = __ballot_sync(ALL_LANES, is_found);
    if (lane_id() == 0 && bits) g.reached[first >> 5] |= bits;
  }
  count_found(found, edges, step);
}

// Enqueue the vertices of a level.
__device__ void gather(const Graph& g, i32 level, u64* tail, Step* step, u64 warp, u64 warps) {
  for (i64 first = warp * 32; first < g.n; first += warps * 32) {
    i64 v = first + lane_id();
    bool is_new = v < g.n && __ldcg(g.hops + v) == level;
    if (__any_sync(ALL_LANES, is_new))
      enqueue_rows(g.indptr, is_new, u32(v), tail, &step->items);
  }
}

enum What { TOP_DOWN, BOTTOM_UP, GATHER };

// levels: how many to find, at most. edges_examined: the number of edges that leave the vertices
// reached, which a search that is top-down alone has examined.
extern "C" __global__ void search(const i64* indptr, const u32* indices, const i64* reverse_indptr,
                                  const u32* reverse, i64 n, i64 m, i64 can_go_back, i64 source,
                                  i64 levels, i32* hops, u32* reached, u64* queue, Step* records,
                                  u64* edges_examined) {
  Graph g = {indptr, indices, reverse_indptr, reverse, n, hops, reached};
  u64 warp = warp_number(), warps = warp_count();

  u64 degree = indptr[source + 1] - indptr[source];
  u64 begin = 0, end = enqueue_alone(indptr, source, queue);
  if (thread_number() == 0) {
    hops[source] = 0;
    reached[source >> 5] = 1u << (source & 31);
  }
  grid_sync();

  u64 unseen = m - degree;  // edges of vertices not yet reached
  u64 size = 1;             // of the frontier
  i32 level = 0;
  What what = can_go_back && degree > unseen / ALPHA ? BOTTOM_UP : TOP_DOWN;
  for (Steps<Step> steps = {records};;) {
    Step* step = steps.record();
    if (what != GATHER) ++level;
    if (what == TOP_DOWN)
      expand(g, queue, begin, end, level, step);
    else if (what == BOTTOM_UP)
      look_back(g, level, step, warp, warps);
    else
      gather(g, level, queue + end, step, warp, warps);
    auto [items, found, edges] = steps.end();
    if (what != GATHER && (found == 0 || level == levels)) break;
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
  if (thread_number() == 0) *edges_examined = m - unseen;
}
