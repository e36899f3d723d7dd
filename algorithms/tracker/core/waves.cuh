// Waves over lists of vertices, in a cooperative kernel.
//
// A list has the rows of its vertices in pieces (lpma/cuda/work_queue.cuh), so that many warps
// share a hub. A wave is a step (lpma/cuda/steps.cuh) that handles the items of a list. What it
// finds it appends to the lists of later waves.
//
// While a list is thin, one block takes wave after wave *alone*, without waiting for the grid, and
// the other blocks wait for it to finish: most waves have a few items, and the barrier would take
// most of their time.
#pragma once
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr u32 BLOCK = 1024;                  // threads; cuda.py has BLOCK and PIECE, too
constexpr u32 LOADS_IN_FLIGHT = 4;           // of a lane: entries that it reads together
constexpr u32 PIECE = 32 * LOADS_IN_FLIGHT;  // entries
constexpr i64 WAVE = 64;                     // items that are read in the time of an empty wave
constexpr u32 THIN = 64;                     // items of a list that one block takes alone, at most
enum { NEXT, ASIDE };                        // the lists that a wave appends to

// How many items a wave appended to each list.
struct Found {
  u32 items[2];
};

struct Rows {
  const i64* indptr;
  const u32* indices;
  u32 n;
};

// Items first … first + count - 1.
struct Part {
  u64* items;
  u32 first, count;
};

// What is the same in all threads, after waves that one block took alone, too.
struct State {
  Part list[2];  // NEXT and ASIDE, without what this wave appends
  Part last[2];  // what the last wave appended to them
  i64 budget;    // items that may still be appended
  u32 turn;      // of the records: that in which this wave counts
  i32 number;    // of the next wave
};

struct Room {
  Found found[4];  // three records, and nothing
  State state;     // for the blocks that wait
};

// Who takes a wave: the grid, or only this block.
struct Team {
  bool alone;

  __device__ __forceinline__ u32 block() const { return alone ? 0 : blockIdx.x; }
  __device__ __forceinline__ u32 blocks() const { return alone ? 1 : gridDim.x; }
  __device__ __forceinline__ bool is_first() const { return block() == 0 && threadIdx.x == 0; }
  template <typename Record>
  __device__ __forceinline__ Record read_together(const Record* record) const {
    if (alone)
      __syncthreads();
    else
      grid_sync();
    return read_for_block(record);
  }
};

struct Waves : State, Team {
  Room* room;

  __device__ __forceinline__ Steps<Found, Team> steps() const { return {room->found, *this, turn}; }
};

__device__ __forceinline__ void begin_list(Waves& w, u32 kind, u64* items) {
  w.list[kind] = {items, 0, 0};
}

// Appends each lane's vertex v, if it has one. Whole warps call it.
__device__ __forceinline__ void append(const Rows& g, const Waves& w, u32 kind, bool has, u32 v) {
  if (!__any_sync(ALL_LANES, has)) return;
  u32 pieces = has ? max(1u, pieces_of<PIECE>(g.indptr[v + 1] - g.indptr[v])) : 0;
  const Part& list = w.list[kind];
  enqueue_pieces(pieces, v, list.items + list.count, &w.room->found[w.turn].items[kind]);
}

// Waits for the end of a wave, and takes what it appended into the lists.
__device__ __forceinline__ void finish_wave(Waves& w) {
  auto steps = w.steps();
  Found found = steps.end();
  w.turn = steps.turn;
  for (u32 kind = 0; kind < 2; ++kind) {
    w.last[kind] = {w.list[kind].items, w.list[kind].count, found.items[kind]};
    w.list[kind].count += found.items[kind];
    w.budget -= found.items[kind];
  }
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
    u64 item = has ? __ldcg(part.items + part.first + i) : 1ull << 32;
    visit(item >> 32 == 0, u32(item));  // the first piece stands for the vertex
  });
}

struct PieceOfRow : Piece {
  u32 v;
  u32 id;  // among all pieces: below the room of a list

  __device__ __forceinline__ i64 last() const { return first + length; }
};

__device__ __forceinline__ PieceOfRow piece_of(const Rows& g, u64 item) {
  u32 v = u32(item), i = u32(item >> 32);
  return {piece_of<PIECE>(g.indptr, v, i), v, u32(g.indptr[v] / PIECE) + v + i};
}

// Calls visit(piece) for every item of a part, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_items(const Rows& g, const Waves& w, const Part& part,
                                          Visit visit) {
  u32 warps = w.blocks() * (BLOCK / 32);
  for (u32 i = w.block() * (BLOCK / 32) + warp_id(); i < part.count; i += warps)
    visit(piece_of(g, __ldcg(part.items + part.first + i)));
}

// A lane's entries of a piece: x[j] is one where has[j] is set.
struct Entries {
  u32 x[LOADS_IN_FLIGHT];
  bool has[LOADS_IN_FLIGHT];
};

// Calls visit(piece, entries) for every item of a part, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_pieces(const Rows& g, const Waves& w, const Part& part,
                                           Visit visit) {
  for_items(g, w, part, [&](const PieceOfRow& piece) {
    Entries own;
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      i64 at = piece.first + lane_id() + 32 * j;
      own.has[j] = at < piece.last();
      own.x[j] = own.has[j] ? g.indices[at] : 0;
    }
    visit(piece, own);
  });
}
