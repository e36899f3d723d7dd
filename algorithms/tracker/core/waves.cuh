// Waves over lists of vertices, in a cooperative kernel.
//
// A list has the rows of its vertices in pieces (lpma/cuda/work_queue.cuh), so that many warps
// share a hub. A wave is a step (lpma/cuda/steps.cuh) that handles the items of a list. What it
// finds it appends to the lists of later waves.
#pragma once
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr u32 BLOCK = 1024;                  // threads; cuda.py has BLOCK and PIECE, too
constexpr u32 LOADS_IN_FLIGHT = 4;           // of a lane: entries that it reads together
constexpr u32 PIECE = 32 * LOADS_IN_FLIGHT;  // entries
constexpr i64 WAVE = 64;                     // items that are read in the time of an empty wave
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

// What is the same in all threads.
struct Waves {
  Part list[2];  // NEXT and ASIDE, without what this wave appends
  Part last[2];  // what the last wave appended to them
  i64 budget;    // items that may still be appended
  Steps<Found> steps;
};

__device__ __forceinline__ void begin_list(Waves& w, u32 kind, u64* items) {
  w.list[kind] = {items, 0, 0};
}

// Appends each lane's vertex v, if it has one. Whole warps call it.
__device__ __forceinline__ void append(const Rows& g, const Waves& w, u32 kind, bool has, u32 v) {
  if (!__any_sync(ALL_LANES, has)) return;
  u32 pieces = has ? max(1u, pieces_of<PIECE>(g.indptr[v + 1] - g.indptr[v])) : 0;
  const Part& list = w.list[kind];
  enqueue_pieces(pieces, v, list.items + list.count, &w.steps.record()->items[kind]);
}

// Waits for the end of a wave, and takes what it appended into the lists.
__device__ __forceinline__ void finish_wave(Waves& w) {
  Found found = w.steps.end();
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
  for (; w.last[kind].count && w.budget >= 0 && number < most; ++number) wave(number);
}

// Calls visit(has, i) for every i below `count`, one for each lane, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_numbers(i64 count, Visit visit) {
  for (i64 start = thread_number() - lane_id(); start < count; start += thread_count())
    visit(start + lane_id() < count, start + lane_id());
}

// Calls visit(has, v) for every vertex of a part, one for each lane, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_vertices(const Part& part, Visit visit) {
  for_numbers(part.count, [&](bool has, i64 i) {
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
__device__ __forceinline__ void for_items(const Rows& g, const Part& part, Visit visit) {
  for (u32 i = u32(warp_number()); i < part.count; i += u32(warp_count()))
    visit(piece_of(g, __ldcg(part.items + part.first + i)));
}

// A lane's entries of a piece: x[j] is one where has[j] is set.
struct Entries {
  u32 x[LOADS_IN_FLIGHT];
  bool has[LOADS_IN_FLIGHT];
};

// Calls visit(piece, entries) for every item of a part, by whole warps.
template <typename Visit>
__device__ __forceinline__ void for_pieces(const Rows& g, const Part& part, Visit visit) {
  for_items(g, part, [&](const PieceOfRow& piece) {
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
