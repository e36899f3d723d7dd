// Waves over lists of vertices, in a cooperative kernel.
//
// A list has the rows of its vertices in pieces of PIECE entries, an item for each, so that many
// warps share a hub. A wave handles the items of a list. What it finds is appended to the lists of
// later waves, and counted in one of three records. These take turns, so that one barrier for each
// wave is enough: while a wave writes to one record, the next is cleared, which no thread has read
// since the barrier before.
//
// While a list is thin, one block takes wave after wave *alone*, without waiting for the grid, and
// the other blocks wait for its end: most waves have a few items, and the barrier would take most of
// their time.
#pragma once
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/lanes.cuh"

constexpr u32 BLOCK = 1024;           // threads; cuda.py has BLOCK and PIECE, too
constexpr u32 LOADS_IN_FLIGHT = 4;           // loads that a lane has in flight
constexpr u32 PIECE = 32 * LOADS_IN_FLIGHT;  // entries
constexpr i64 WAVE = 64;              // items that could be read in the time of an empty wave
constexpr u32 THIN = 64;              // items of a list that one block takes alone, at most
enum { NEXT, ASIDE };                 // the lists that a wave appends to

// How many items a wave appended to each list.
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

// What is the same in all threads, after waves that one block took alone, too.
struct State {
  Part list[2];  // NEXT and ASIDE, without what this wave appends
  Part last[2];  // what the last wave appended to them
  i64 budget;    // items that may still be appended
  u32 slot;      // the record in which this wave counts
  i32 number;    // of the next wave
};

struct Room {
  Found found[4];  // three records, and nothing
  State state;     // for the blocks that wait
};

struct Waves : State {
  Room* room;
  bool alone;  // whether only this block works

  __device__ __forceinline__ u32 block() const { return alone ? 0 : blockIdx.x; }
  __device__ __forceinline__ u32 blocks() const { return alone ? 1 : gridDim.x; }
};

__device__ __forceinline__ void begin_list(Waves& w, u32 kind, u64* items) {
  w.list[kind] = {items, 0, 0};
}

// For the first wave, which appends nothing.
__device__ __forceinline__ void clear_found(const Waves& w) {
  if (thread_number() == 0) w.room->found[w.slot] = {};
}

// Appends each lane's vertex v, if it has one. Whole warps call it.
__device__ __forceinline__ void append(const Rows& g, const Waves& w, u32 kind, bool has, u32 v) {
  if (!__any_sync(ALL_LANES, has)) return;
  u32 pieces = has ? max(1u, u32((g.indptr[v + 1] - g.indptr[v] + PIECE - 1) / PIECE)) : 0;
  u32 upto = warp_inclusive(pieces), place = 0;
  if (lane_id() == 31) place = atomicAdd(&w.room->found[w.slot].items[kind], upto);
  place = __shfl_sync(ALL_LANES, place, 31) + w.list[kind].count + upto - pieces;
  for (u32 i = 0; i < pieces; ++i) w.list[kind].items[place + i] = u64(v) << 32 | i;
}

// Waits for the end of a wave, and takes what it appended into the lists.
__device__ __forceinline__ void finish_wave(Waves& w) {
  u32 next = w.slot == 2 ? 0 : w.slot + 1;
  if (w.block() == 0 && threadIdx.x == 0) w.room->found[next] = {};
  if (w.alone)
    __syncthreads();
  else
    grid_sync();
  Found found = read_for_block(w.room->found + w.slot);
  for (u32 kind = 0; kind < 2; ++kind) {
    w.last[kind] = {w.list[kind].items, w.list[kind].count, found.items[kind]};
    w.list[kind].count += found.items[kind];
    w.budget -= found.items[kind];
  }
  w.slot = next;
  w.budget -= WAVE;
}

// Takes waves, numbered from `number` on, each of which handles the last part of a list and finishes
// itself, until there is nothing left of that, or of the budget, or the number is `most`. `number`
// is then that of the next.
template <typename Wave>
__device__ __forceinline__ void take_waves(Waves& w, u32 kind, i32& number, i32 most, Wave wave) {
  auto goes_on = [&] { return w.last[kind].count && w.budget >= 0 && number < most; };
  while (goes_on()) {
    bool thin = w.last[kind].count <= THIN && gridDim.x > 1;
    w.alone = thin && blockIdx.x == 0;
    if (!thin || w.alone) do {
        wave(number);
        ++number;
      } while (w.alone && w.last[kind].count <= THIN && goes_on());
    if (!thin) continue;
    if (w.alone && threadIdx.x == 0) {
      w.number = number;
      w.room->state = w;
    }
    w.alone = false;
    grid_sync();
    static_cast<State&>(w) = read_for_block(&w.room->state);
    number = w.number;
  }
}

// Calls visit(has, i) for every i below `count`, one for each lane, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_numbers(const Waves& w, i64 count, Visit visit) {
  i64 threads = i64(w.blocks()) * BLOCK;
  for (i64 start = i64(w.block()) * BLOCK + threadIdx.x - lane_id(); start < count;
       start += threads)
    visit(start + lane_id() < count, start + lane_id());
}

// Calls visit(has, v) for every vertex of a part, one for each lane, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_vertices(const Waves& w, const Part& part, Visit visit) {
  for_numbers(w, part.count, [&](bool has, i64 i) {
    u64 item = has ? __ldcg(part.items + part.first + i) : 1;
    visit(u32(item) == 0, u32(item >> 32));
  });
}

// The piece of an item, and which lane has what of it.
struct Piece {
  u32 v;
  u32 id;    // of the piece, among all: below room of a list
  i64 first, last;  // its entries
};

__device__ __forceinline__ Piece piece_of(const Rows& g, u64 item) {
  u32 v = u32(item >> 32), i = u32(item);
  i64 begin = g.indptr[v], first = begin + i64(i) * PIECE;
  return {v, u32(begin / PIECE) + v + i, first, min(first + PIECE, g.indptr[v + 1])};
}

// Calls visit(piece) for every item of a part, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_items(const Rows& g, const Waves& w, const Part& part,
                                          Visit visit) {
  u32 warps = w.blocks() * (BLOCK / 32);
  for (u32 i = w.block() * (BLOCK / 32) + warp_id(); i < part.count; i += warps)
    visit(piece_of(g, __ldcg(part.items + part.first + i)));
}

// Calls body.piece(piece, x, has) for every item of a part, by whole warps. A lane has the entries
// x[0 … LOADS_IN_FLIGHT - 1] of v's row, as far as has[…] is set.
template <typename Body>
__device__ __forceinline__ void for_pieces(const Rows& g, const Waves& w, const Part& part,
                                           const Body& body) {
  for_items(g, w, part, [&](const Piece& piece) {
    u32 x[LOADS_IN_FLIGHT];
    bool has[LOADS_IN_FLIGHT];
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      i64 at = piece.first + lane_id() + 32 * j;
      has[j] = at < piece.last;
      x[j] = has[j] ? g.indices[at] : 0;
    }
    body.piece(piece, x, has);
  });
}
