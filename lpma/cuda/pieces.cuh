// Queues of rows in pieces, and the entries of queued pieces dealt to the lanes of warps.
//
// Idea: an item of a queue is piece << 32 | row: a piece of the row, of PIECE entries at most, so
// that a hub is many items. A queue that has each row once needs no more than n + m / PIECE items
// (pieces.py). A warp takes up to 32 items, and its lanes their entries, one after another, so that
// rows of one entry and of thousands keep all lanes at work.
//
// What a visitor does with its entries is its own. It asks for EACH of them at a time, so that the
// loads of several may be under way together.
//
// Requires: whole warps, which have converged.
#pragma once
#include "lpma/cuda/lanes.cuh"

constexpr u32 PIECE = 256;  // entries; pieces.py has it too

__device__ __forceinline__ u32 pieces_of(u64 length) { return u32((length + PIECE - 1) / PIECE); }

// Enqueue each lane's `count` items behind the *items that are in `queue`: item_of(i) is number i.
template <class ItemOf>
__device__ __forceinline__ void enqueue_items(u32 count, u64* queue, u64* items, ItemOf item_of) {
  u32 through = warp_inclusive(count);
  u32 all = __shfl_sync(ALL_LANES, through, 31);
  u64 place = 0;
  if (lane_id() == 0 && all) place = atomicAdd(items, u64(all));
  place = __shfl_sync(ALL_LANES, place, 0) + through - count;
  for (u32 i = 0; i < count; ++i) queue[place + i] = item_of(i);
}

// Enqueue the rows v of the lanes with `is_new` behind the *items that are in `queue`.
__device__ __forceinline__ void enqueue_rows(const i64* indptr, bool is_new, u32 v, u64* queue,
                                             u64* items) {
  u32 count = is_new ? pieces_of(indptr[v + 1] - indptr[v]) : 0;
  enqueue_items(count, queue, items, [&](u32 i) { return u64(i) << 32 | v; });
}

// Enqueue one row, alone, by all threads of the grid; of how many items it is.
__device__ __forceinline__ u64 enqueue_alone(const i64* indptr, i64 v, u64* queue) {
  u64 items = pieces_of(indptr[v + 1] - indptr[v]);
  for (u64 i = thread_number(); i < items; i += thread_count()) queue[i] = i << 32 | u64(v);
  return items;
}

// The entries of a row from `first` on for which an item stands.
struct Piece {
  i64 first;
  u32 length;
};

__device__ __forceinline__ Piece piece_of(const i64* indptr, u32 row, u64 piece) {
  i64 first = indptr[row] + i64(piece * PIECE);
  return {first, u32(min(i64(PIECE), indptr[row + 1] - first))};
}

// An entry that a lane is dealt, and which lane has its item. If it is none, there is no such entry
// left, and `at` may be anywhere.
struct Entry {
  bool is_one;
  u32 owner;
  i64 at;
};

// What a warp is dealt at a time: each lane EACH entries of the pieces that its lanes have.
struct Hand {
  i64 start;    // of this lane's piece, less the entries of the lanes before
  u32 through;  // entries of the lanes up to this one
  u32 all;      // of all lanes
  u32 base;     // dealt before

  // Number j of this lane's, below EACH.
  __device__ __forceinline__ Entry entry(u32 j) const {
    u32 number = base + 32 * j + lane_id();
    u32 owner = 0;  // how many lanes' entries end at `number` or before; 31 beyond the last
    for (u32 by = 16; by; by >>= 1)
      if (__shfl_sync(ALL_LANES, through, owner + by - 1) <= number) owner += by;
    return {number < all, owner, __shfl_sync(ALL_LANES, start, owner) + number};
  }
};

// Deal the entries of queue[begin … end - 1] to all warps of the grid. own_of(item) is a Piece, or a
// structure derived from it with more that a lane is to know of its item; a lane without an item has
// one of zeros. visit(hand, own) is called by whole warps, until all has been dealt.
template <u32 EACH, class OwnOf, class Visit>
__device__ __forceinline__ void deal(const u64* queue, u64 begin, u64 end, OwnOf own_of,
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
    for (u32 base = 0; base < all; base += 32 * EACH) visit(Hand{start, through, all, base}, own);
  }
}
