// Waves over lists of vertices, in a cooperative kernel.
//
// A list has the rows of its vertices in pieces of PIECE entries, an item for each, so that many
// warps share a hub. A wave handles the items of a list. What it finds is appended to the lists of
// later waves, and counted in one of three records. These take turns, so that one barrier for each
// wave is enough: while a wave writes to one record, the next is cleared, which no thread has read
// since the barrier before.
#pragma once
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/lanes.cuh"

constexpr u32 BLOCK = 1024;           // threads; core_cuda.py has BLOCK and PIECE, too
constexpr u32 TOGETHER = 4;           // loads that a lane has in flight
constexpr u32 PIECE = 32 * TOGETHER;  // entries
constexpr i64 WAVE = 64;              // items that could be read in the time of an empty wave
enum { NEXT, ASIDE };                 // the lists that a wave appends to

// How many items a wave appended to each list. core_cuda.py has its size, FOUND.
struct Found {
  u32 items[2];
};

struct Rows {
  const i64* indptr;
  const u32* indices;
  u32 n;
};

// Items first … first + count - 1: vertex << 32 | piece.
struct Part {
  u64* items;
  u32 first, count;
};

// The state of the waves, which is the same in all threads.
struct Waves {
  Found* found;  // three records
  u32 slot;      // the record in which this wave counts
  i64 budget;    // items that may still be appended
  Part list[2];  // NEXT and ASIDE, without what this wave appends
  Part last[2];  // what the last wave appended to them
};

__device__ __forceinline__ void begin_list(Waves& w, u32 kind, u64* items) {
  w.list[kind] = {items, 0, 0};
}

// Appends each lane's vertex v, if it has one. Whole warps call it.
__device__ __forceinline__ void append(const Rows& g, const Waves& w, u32 kind, bool has, u32 v) {
  if (!__any_sync(ALL_LANES, has)) return;
  u32 pieces = has ? max(1u, u32((g.indptr[v + 1] - g.indptr[v] + PIECE - 1) / PIECE)) : 0;
  u32 upto = warp_inclusive(pieces), place = 0;
  if (lane_id() == 31) place = atomicAdd(&w.found[w.slot].items[kind], upto);
  place = __shfl_sync(ALL_LANES, place, 31) + w.list[kind].count + upto - pieces;
  for (u32 i = 0; i < pieces; ++i) w.list[kind].items[place + i] = u64(v) << 32 | i;
}

// Waits for the end of a wave, and takes what it appended into the lists.
__device__ __forceinline__ void finish_wave(Waves& w) {
  u32 next = w.slot == 2 ? 0 : w.slot + 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) w.found[next] = {};
  grid_sync();
  Found found = read_for_block(w.found + w.slot);
  for (u32 kind = 0; kind < 2; ++kind) {
    w.last[kind] = {w.list[kind].items, w.list[kind].count, found.items[kind]};
    w.list[kind].count += found.items[kind];
    w.budget -= found.items[kind];
  }
  w.slot = next;
  w.budget -= WAVE;
}

// Calls visit(has, i) for every i below `count`, one for each lane, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_numbers(i64 count, Visit visit) {
  i64 threads = thread_count();
  for (i64 start = thread_number() - lane_id(); start < count; start += threads)
    visit(start + lane_id() < count, start + lane_id());
}

// Calls visit(has, v) for every vertex of a part, one for each lane, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_vertices(const Part& part, Visit visit) {
  for_numbers(part.count, [&](bool has, i64 i) {
    u64 item = has ? __ldcg(part.items + part.first + i) : 1;
    visit(u32(item) == 0, u32(item >> 32));
  });
}

// Calls body.piece(v, x, has) for every item of a part, by whole warps. A lane has the entries
// x[0 … TOGETHER - 1] of v's row, as far as has[…] is set.
template <typename Body>
__device__ __forceinline__ void for_pieces(const Rows& g, const Part& part, const Body& body) {
  u32 warps = gridDim.x * (BLOCK / 32);
  for (u32 i = blockIdx.x * (BLOCK / 32) + warp_id(); i < part.count; i += warps) {
    u64 item = __ldcg(part.items + part.first + i);
    u32 v = u32(item >> 32);
    i64 first = g.indptr[v] + i64(u32(item)) * PIECE + lane_id(), last = g.indptr[v + 1];
    u32 x[TOGETHER];
    bool has[TOGETHER];
#pragma unroll
    for (u32 j = 0; j < TOGETHER; ++j) {
      has[j] = first + 32 * j < last;
      x[j] = has[j] ? g.indices[first + 32 * j] : 0;
    }
    body.piece(v, x, has);
  }
}
