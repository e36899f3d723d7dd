// Queues of rows in pieces, and the entries of queued pieces dealt to the lanes of warps.
//
// Idea: an item of a queue is piece << 32 | row: at most PIECE entries of the row, so that a hub is
// many items. A queue that has each row once needs room for n + m / PIECE items (work_queue.py). A
// warp takes up to 32 items, and its lanes their entries, one after another, so that rows of one
// entry and of thousands keep all lanes busy.
//
// What a visitor does with its entries is its own business. It gets EACH of them at a time, so that
// several loads can be in flight together.
//
// Requires: whole warps, which have converged.
#pragma once
#include "lpma/cuda/lanes.cuh"

constexpr u32 USUAL_PIECE = 256;  // entries; work_queue.py has it too

template <u32 PIECE = USUAL_PIECE>
__device__ __forceinline__ u32 pieces_of(u64 length) {
  return u32((length + PIECE - 1) / PIECE);
}

// Enqueue `count` items of each lane behind the *items that are in `queue`: item_of(i) is number i.
template <typename Count, class ItemOf>
__device__ __forceinline__ void enqueue_items(u32 count, u64* queue, Count* items,
                                              ItemOf item_of) {
  Count place = places_of_lane(count, items);
  for (u32 i = 0; i < count; ++i) queue[place + i] = item_of(i);
}

// Enqueue `pieces` pieces of each lane's row v behind the *items that are in `queue`.
template <typename Count>
__device__ __forceinline__ void enqueue_pieces(u32 pieces, u32 v, u64* queue, Count* items) {
  enqueue_items(pieces, queue, items, [&](u32 i) { return u64(i) << 32 | v; });
}

// Enqueue the rows v of the lanes with `is_new` behind the *items that are in `queue`.
__device__ __forceinline__ void enqueue_rows(const i64* indptr, bool is_new, u32 v, u64* queue,
                                             u64* items) {
  enqueue_pieces(is_new ? pieces_of(indptr[v + 1] - indptr[v]) : 0, v, queue, items);
}

// Enqueue a single row, by all threads of the grid. Returns the number of its items.
__device__ __forceinline__ u64 enqueue_alone(const i64* indptr, i64 v, u64* queue) {
  u64 items = pieces_of(indptr[v + 1] - indptr[v]);
  for (u64 i = thread_number(); i < items; i += thread_count()) queue[i] = i << 32 | u64(v);
  return items;
}

// The entries of a row, from `first` on, for which an item stands.
struct Piece {
  i64 first;
  u32 length;
};

template <u32 PIECE = USUAL_PIECE>
__device__ __forceinline__ Piece piece_of(const i64* indptr, u32 row, u64 piece) {
  i64 first = indptr[row] + i64(piece * PIECE);
  return {first, u32(min(i64(PIECE), indptr[row + 1] - first))};
}

// An entry for a lane, and which lane has its item. Where `is_one` is false there is no such entry,
// and `at` may be anywhere.
struct Entry {
  bool is_one;
  u32 owner;
  i64 at;
};

// What a warp visits at a time: for each lane, EACH entries of the pieces that its lanes have.
struct WarpBatch {
  i64 start;    // of this lane's piece, less the entries of the lanes before
  u32 through;  // entries of the lanes up to this one
  u32 all;      // of all lanes
  u32 base;     // visited before

  // This lane's entry number j, below EACH.
  __device__ __forceinline__ Entry entry(u32 j) const {
    u32 number = base + 32 * j + lane_id();
    u32 owner = 0;  // how many lanes' entries end at `number` or before; 31 beyond the last
    for (u32 by = 16; by; by >>= 1)
      if (__shfl_sync(ALL_LANES, through, owner + by - 1) <= number) owner += by;
    return {number < all, owner, __shfl_sync(ALL_LANES, start, owner) + number};
  }
};

// Visit the entries of queue[begin … end - 1], by all warps of the grid. own_of(item) is a Piece, or
// a structure derived from Piece that holds what else a lane needs to know about its item; a lane
// without an item has all zeros. visit(batch, own) is called by whole warps until none is left.
template <u32 EACH, class OwnOf, class Visit>
__device__ __forceinline__ void for_each_entry(const u64* queue, u64 begin, u64 end, OwnOf own_of,
                                               Visit visit) {
  using Own = decltype(own_of(u64{}));
  u64 warps = warp_count();
  u64 each = min(u64(32), max(u64(1), (end - begin + warps - 1) / warps));
  for (u64 first = begin + warp_number() * each; first < end; first += warps * each) {
    u64 at = first + lane_id();
    Own own = {};
    if (lane_id() < each && at < end) own = own_of(__ldcg(queue + at));
    u32 through = warp_inclusive(own.length);
    u32 all = __shfl_sync(ALL_LANES, through, 31);
    i64 start = own.first - i64(through - own.length);
    for (u32 base = 0; base < all; base += 32 * EACH)
      visit(WarpBatch{start, through, all, base}, own);
  }
}
