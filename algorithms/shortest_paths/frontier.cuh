// The frontier of a search along weighted edges: a queue of rows in pieces, whose entries are dealt
// to lanes (lpma/cuda/work_queue.cuh).
//
// Idea: what a warp finds it gathers in shared memory, and passes it on by 32: else every warp would
// add one or two at a time to the same counter.
//
// Encoding: lengths are the bits of float64 numbers that are not negative and not NaN. As unsigned
// integers they have the order of the numbers, so that atomicMin on them is the numbers' minimum.
#pragma once
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr u32 THREADS = 256;  // of a block: launch.BLOCK
constexpr u64 INFINITE = 0x7FF0000000000000;
constexpr u64 NONE = ~0ull;

__device__ __forceinline__ double number_of(u64 length) {
  return __longlong_as_double(i64(length));
}

__device__ __forceinline__ u64 length_of(double number) {
  return u64(__double_as_longlong(number));
}

template <typename Weight>
struct Graph {
  const i64* indptr;
  const u32* indices;
  const Weight* weights;
  u64* distance;  // the least length of a path found so far
};

// An edge from a vertex of the frontier.
struct Relaxation {
  bool is_one;  // false: the lane has no edge
  u32 u, v;
  u64 length;  // of the path through u
  u64 known;   // the distance of v, or what it was a moment ago
};

// Vertices that a warp has found, to be passed on by 32. Of two slots a lane, the first 32 hold
// what is not passed on yet; `count`, how many they are, is the same in all lanes.
struct Gathered {
  u32* slots;
  u32 count;

  // A place for one kind of vertices, number `kind` below KINDS, of this warp.
  template <u32 KINDS>
  static __device__ __forceinline__ Gathered empty(u32 kind) {
    __shared__ u32 slots[KINDS][THREADS / 32][64];
    return {slots[kind][warp_id()], 0};
  }

  // Add the lanes' vertices v with `is_new`, and call pass(is_one, v) once there are 32. For one
  // whole warp, as is `pass`.
  template <typename Pass>
  __device__ __forceinline__ void add(bool is_new, u32 v, Pass pass) {
    u32 lanes = __ballot_sync(ALL_LANES, is_new);
    if (!lanes) return;
    if (is_new) slots[count + lanes_before(lanes)] = v;
    count += __popc(lanes);
    __syncwarp();
    if (count < 32) return;
    u32 first = slots[lane_id()], second = slots[32 + lane_id()];
    __syncwarp();
    slots[lane_id()] = second;
    count -= 32;
    __syncwarp();
    pass(true, first);
  }

  // Pass on what is left.
  template <typename Pass>
  __device__ __forceinline__ void finish(Pass pass) {
    if (count) pass(lane_id() < count, lane_id() < count ? slots[lane_id()] : 0);
    count = 0;
    __syncwarp();
  }
};

// A piece of the row of a vertex of the frontier.
struct Reached : Piece {
  u32 vertex;
  double distance;
};

// Call visit(Relaxation) for the entries of queue[0 … size - 1], by whole warps of the grid.
template <typename Weight, typename Visit>
__device__ __forceinline__ void relaxations(const Graph<Weight>& g, const u64* queue, u64 size,
                                            Visit visit) {
  auto own_of = [&](u64 item) -> Reached {
    u32 u = u32(item);
    return {piece_of(g.indptr, u, item >> 32), u, number_of(__ldcg(g.distance + u))};
  };
  for_each_entry<1>(queue, 0, size, own_of, [&](const WarpBatch& batch, const Reached& own) {
    Entry entry = batch.entry(0);
    double start = __shfl_sync(ALL_LANES, own.distance, entry.owner);
    Relaxation r = {entry.is_one, __shfl_sync(ALL_LANES, own.vertex, entry.owner), 0, INFINITE, 0};
    if (r.is_one) {
      r.v = g.indices[entry.at];
      r.length = length_of(start + double(g.weights[entry.at]));
      r.known = __ldcg(g.distance + r.v);
    }
    visit(r);
  });
}
