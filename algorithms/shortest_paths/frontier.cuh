// The frontier of a search along weighted edges: queues of rows, and their entries dealt to lanes.
//
// Idea: an item of a queue is piece << 32 | vertex: a piece of the vertex's row, of PIECE entries
// at most, so that a hub is many items. A warp takes up to 32 items and deals their entries to its
// lanes, so that rows of one entry and of thousands keep all lanes at work. What a warp finds it
// gathers in shared memory, and passes it on by 32: else every warp would add one or two at a time
// to the same counter.
//
// Encoding: lengths are the bits of float64 numbers that are not negative and not NaN. As unsigned
// integers they have the order of the numbers, so that atomicMin on them is the numbers' minimum.
#pragma once
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/lanes.cuh"

constexpr u32 PIECE = 256;
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

// Enqueue the rows of the lanes' vertices v with `is_new` in queue[*items …]; for one whole warp.
__device__ __forceinline__ void enqueue(const i64* indptr, bool is_new, u32 v, u64* queue,
                                        u64* items) {
  u64 degree = is_new ? indptr[v + 1] - indptr[v] : 0;
  u32 pieces = u32((degree + PIECE - 1) / PIECE);
  u32 through = warp_inclusive(pieces);
  u32 all = __shfl_sync(ALL_LANES, through, 31);
  u64 place = 0;
  if (lane_id() == 0 && all) place = atomicAdd(items, u64(all));
  place = __shfl_sync(ALL_LANES, place, 0) + through - pieces;
  for (u32 i = 0; i < pieces; ++i) queue[place + i] = u64(i) << 32 | v;
}

// Call visit(Relaxation) for the entries of queue[0 … size - 1], by whole warps of the grid.
template <typename Weight, typename Visit>
__device__ __forceinline__ void deal(const Graph<Weight>& g, const u64* queue, u64 size,
                                     Visit visit) {
  u64 warp = warp_number(), warps = warp_count();
  u64 each = min(u64(32), max(u64(1), (size + warps - 1) / warps));
  for (u64 begin = warp * each; begin < size; begin += warps * each) {
    bool has_item = lane_id() < each && begin + lane_id() < size;
    u64 item = has_item ? __ldcg(queue + begin + lane_id()) : 0;
    u32 row = u32(item);
    i64 first = has_item ? g.indptr[row] + i64(item >> 32) * PIECE : 0;
    u32 count = has_item ? u32(min(i64(PIECE), g.indptr[row + 1] - first)) : 0;
    double from = has_item ? number_of(__ldcg(g.distance + row)) : 0;
    u32 through = warp_inclusive(count);
    u32 all = __shfl_sync(ALL_LANES, through, 31);
    for (u32 base = 0; base < all; base += 32) {
      u32 entry = base + lane_id();
      u32 owner = 0;  // the number of items that end at `entry` or before; 31 beyond the last
      for (u32 by = 16; by; by >>= 1)
        if (__shfl_sync(ALL_LANES, through, owner + by - 1) <= entry) owner += by;
      u32 before = __shfl_sync(ALL_LANES, through - count, owner);
      i64 e = __shfl_sync(ALL_LANES, first, owner) + (entry - before);
      double start = __shfl_sync(ALL_LANES, from, owner);
      Relaxation r = {entry < all, __shfl_sync(ALL_LANES, row, owner), 0, INFINITE, 0};
      if (r.is_one) {
        r.v = g.indices[e];
        r.length = length_of(start + double(g.weights[e]));
        r.known = __ldcg(g.distance + r.v);
      }
      visit(r);
    }
  }
}
