// Steps over the live vertices of a graph, and walks along the entries of those that are enqueued.
//
// A step (lpma/cuda/steps.cuh) is a sweep over the live vertices, or a walk along the entries of
// the vertices that the step before enqueued. Rows are enqueued in pieces (lpma/cuda/work_queue.cuh);
// an item is way << 63 | piece << 32 | vertex.
//
// A step costs about as much as the work on 2^STEP_SHIFT items. When more than `budget` steps have
// been paid for, the kernel stops, and says so.
//
// Requires: a cooperative launch.
#pragma once
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr i32 NONE = -1;
constexpr u32 OUT = 1, IN = 2, BOTH = OUT | IN;  // ways
constexpr u32 LOADS_IN_FLIGHT = 4;               // of a lane: entries that it reads together
constexpr u32 STEP_SHIFT = 14;

// What a step counts.
struct Record {
  u64 items;  // enqueued
  u64 kept;   // vertices that stay live
};

struct Graph {
  const i64* indptr;
  const u32* indices;
  const i64* reverse_indptr;
  const u32* reverse;
  i64 n, m;
  i32* label;
  u32* least;
  u32* region;
  u32* colour;
  i32* out;  // counters; while colours spread, out[w] tells the step in which w was enqueued
  i32* in;
  u64* queue;  // 2 * half() items

  __device__ i64 half() const { return n + m / USUAL_PIECE; }
  __device__ const i64* starts(bool is_in) const { return is_in ? reverse_indptr : indptr; }
};

// Enqueue the rows of the lanes' vertices, each in the ways of its mask; for one whole warp.
__device__ void enqueue(const Graph& g, u32 ways, u32 v, u64* tail, Record* record) {
  u32 outs = ways & OUT ? pieces_of(g.indptr[v + 1] - g.indptr[v]) : 0;
  u32 ins = ways & IN ? pieces_of(g.reverse_indptr[v + 1] - g.reverse_indptr[v]) : 0;
  enqueue_items(outs + ins, tail, &record->items, [&](u32 i) {
    return (i < outs ? u64(i) : u64(1) << 31 | (i - outs)) << 32 | v;
  });
}

// The live vertices of a list, one after another: visit(v) gives the ways in which v is enqueued.
// Those that are still live afterwards are listed in `kept`, if that is given.
template <class Visit>
__device__ void sweep(const Graph& g, const u32* live, u64 count, u32* kept, u64* tail,
                      Record* record, Visit visit) {
  for (u64 first = warp_number() * 32; first < count; first += warp_count() * 32) {
    u64 i = first + lane_id();
    u32 v = i < count ? __ldcg(live + i) : 0;
    u32 ways = i < count ? visit(v) : 0;
    if (__any_sync(ALL_LANES, ways)) enqueue(g, ways, v, tail, record);
    if (!kept) continue;
    bool stays = i < count && g.label[v] == NONE;
    append_of_lanes(stays, v, kept, &record->kept);
  }
}

// A piece of a vertex's row of one of the ways.
struct Way : Piece {
  u32 vertex;
  bool is_in;
};

// The entries w of the items queue[begin … end - 1]: visit(v, w, is_in) gives the ways in which w
// is enqueued in `tail`.
template <class Visit>
__device__ void walk(const Graph& g, const u64* queue, u64 begin, u64 end, u64* tail,
                     Record* record, Visit visit) {
  auto own_of = [&](u64 item) -> Way {
    bool is_in = item >> 63;
    u32 v = u32(item);
    return {piece_of(g.starts(is_in), v, item >> 32 & 0x7FFFFFFF), v, is_in};
  };
  auto visit_all = [&](const WarpBatch& batch, const Way& own) {
    u32 v[LOADS_IN_FLIGHT], w[LOADS_IN_FLIGHT], ins = 0;
    u32 all_ins = __ballot_sync(ALL_LANES, own.is_in);
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      Entry entry = batch.entry(j);
      v[j] = __shfl_sync(ALL_LANES, own.vertex, entry.owner);
      u32 is_in = all_ins >> entry.owner & 1;
      const u32* entries = is_in ? g.reverse : g.indices;
      w[j] = entry.is_one ? entries[entry.at] : v[j];
      ins |= is_in << j;
    }
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      u32 ways = w[j] == v[j] ? 0 : visit(v[j], w[j], bool(ins >> j & 1));
      if (__any_sync(ALL_LANES, ways)) enqueue(g, ways, w[j], tail, record);
    }
  };
  for_each_entry<LOADS_IN_FLIGHT>(queue, begin, end, own_of, visit_all);
}

struct PaidSteps : Steps<Record> {
  u64 budget, spent;

  // After a step that worked on `work` items.
  __device__ Record end(u64 work) {
    Record counted = Steps::end();
    spent += 1 + (work >> STEP_SHIFT);
    return counted;
  }

  __device__ bool are_paid() const { return spent <= budget; }
};

__device__ __forceinline__ bool is_live(const Graph& g, u32 v) {
  return __ldcg(g.label + v) == NONE;
}

__device__ __forceinline__ bool take(const Graph& g, u32 v, u32 root) {
  return is_live(g, v) && atomicCAS(g.label + v, NONE, i32(root)) == NONE;
}

// Walk along the items in front, and then along what that enqueues behind them, to the end.
template <class Visit>
__device__ void walk_all(const Graph& g, PaidSteps& steps, u64 items, Visit visit) {
  for (u64 begin = 0, end = items; begin < end && steps.are_paid();) {
    walk(g, g.queue, begin, end, g.queue + end, steps.record(), visit);
    u64 more = steps.end(end - begin).items;
    begin = end;
    end += more;
  }
}
