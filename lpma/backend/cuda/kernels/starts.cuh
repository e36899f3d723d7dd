// Where rows start: writing indptr from the slots of a store, for kernels that read all of them, a
// stretch at a time (pairs.cuh).
//
// indptr is written where the source changes: a change from a to b writes entries a + 1 … b. A warp
// lists the changes of its slots first, so that all its lanes have some to write. A gap of more
// than SHORT entries is written by the whole warp. One of LONG or more is noted in pieces, which
// the blocks of `fill_pieces` share, so that no thread is held up by many absent vertices.
#pragma once
#include "lpma/backend/cuda/kernels/pairs.cuh"

constexpr u32 SHORT = 8, LONG = 4096, PIECE = 65536;
constexpr u32 NO_SOURCE = ~0u;  // before the first slot; NO_SOURCE + 1 is entry 0

// A piece of a gap: indptr[first … first + count - 1] = value, with count <= PIECE.
struct Piece {
  u32 first, count;
  i64 value;
};

// Where `fill_pieces` finds its work.
struct Pieces {
  u32* number;
  Piece* pieces;
};

// Write `count` entries from `first` on, or note them for later; for one whole warp.
__device__ __forceinline__ void fill(i64* indptr, u32 first, u64 count, i64 value,
                                     const Pieces& later) {
  u32 lane = lane_id();
  if (count < LONG) {
    for (u32 i = lane; i < count; i += 32) indptr[u64(first) + i] = value;
    return;
  }
  u32 pieces = u32((count + PIECE - 1) / PIECE), place = 0;
  if (lane == 0) place = atomicAdd(later.number, pieces);
  place = __shfl_sync(ALL_LANES, place, 0);
  for (u32 i = lane; i < pieces; i += 32) {
    u64 begin = u64(i) * PIECE;
    u32 held = u32(count - begin < PIECE ? count - begin : PIECE);
    later.pieces[place + i] = {u32(first + begin), held, value};
  }
}

// The filled slots of each of the 32 segments before segment `rank`, the nearest first.
__device__ __forceinline__ u32 slots_behind(const Store& s, u32 rank) {
  return lane_id() < rank ? slots_in(s, rank - 1 - lane_id()) : 0;
}

// The source of the last filled slot before segment `rank`, given slots_behind; `before` slots
// precede the segment. The nearest segments may be empty, or not be there: every eighth is not,
// until a level has all its parts.
__device__ __forceinline__ u32 source_before(const Store& s, u32 rank, u32 behind, u64 before) {
  if (before == 0) return NO_SOURCE;
  u32 filled = __ballot_sync(ALL_LANES, behind);
  if (filled) {
    int nearest = __ffs(filled) - 1;
    u32 count = __shfl_sync(ALL_LANES, behind, nearest);
    return key_src(key_at(s, segment_at(s, rank - 1 - nearest), count - 1));
  }
  Found last = slot_number(s, before - 1);
  return key_src(key_at(s, segment_at(s, last.rank), last.position));
}

// Slots at which a source may begin, in key order: the source, and how many edges of the stretch
// come before. A source is listed again where a segment or a tile begins within it.
struct Starts {
  u32 source[64 * TILES_AT_ONCE];
  u16 place[64 * TILES_AT_ONCE];
};

// List the starts of a stretch, whose place counts `edges`. Returns how many there are.
__device__ __forceinline__ u32 list_starts(Starts& starts, const Stretch& read, u32 edges) {
  u32 listed = 0;
#pragma unroll
  for (u32 tile = 0; tile < TILES_AT_ONCE; ++tile) {
    bool first = has_first(read.filled, tile), second = has_second(read.filled, tile);
    u32 own = key_src(read.keys[tile].first), next = key_src(read.keys[tile].second);
    u32 neighbor = __shfl_up_sync(ALL_LANES, next, 1);  // of no use where a segment begins
    bool begins = lane_id() == 0 || 2 * lane_id() % SEGMENT == 0;
    first = first && (begins || own != neighbor);
    second = second && own != next;
    Marked here(first, second);
    u32 at = listed + here.before();
    if (first) {
      starts.source[at] = own;
      starts.place[at] = u16(read.place[tile]);
    }
    if (second) {
      starts.source[at + first] = next;
      starts.place[at + first] = u16(read.place[tile] + has_first(edges, tile));
    }
    listed += here.count();
  }
  __syncwarp();
  return listed;
}

// Write the entries of indptr that listed starts set. `source`: that of the last slot before, and
// then of the last slot; `first`: the edges before the stretch.
__device__ __forceinline__ void write_starts(const Starts& starts, u32 listed, u32& source,
                                             u64 first, i64* indptr, const Pieces& later) {
  for (u32 base = 0; base < listed; base += 32) {
    u32 i = base + lane_id();
    bool there = i < listed;
    u32 own = there ? starts.source[i] : 0, before = there && i ? starts.source[i - 1] : source;
    i64 entry = i64(first + (there ? starts.place[i] : 0));
    u32 count = there ? own - before : 0;  // entries before + 1 … own
    if (count <= SHORT)
      for (u32 k = 1; k <= count; ++k) indptr[before + k] = entry;
    for (u32 wide = __ballot_sync(ALL_LANES, count > SHORT); wide; wide &= wide - 1) {
      int lane = __ffs(wide) - 1;
      fill(indptr, __shfl_sync(ALL_LANES, before, lane) + 1, __shfl_sync(ALL_LANES, count, lane),
           __shfl_sync(ALL_LANES, entry, lane), later);
    }
  }
  if (listed) source = starts.source[listed - 1];
  __syncwarp();
}

// Write the entries after the last source; `edges`: of all rows, whose number is `vertices`.
__device__ __forceinline__ void write_last_starts(const Store& s, i64 vertices, i64 edges,
                                                  i64* indptr, const Pieces& later) {
  u32 slots = s.counts[1], last = NO_SOURCE;
  if (slots) {
    Found at = slot_number(s, slots - 1);
    last = key_src(key_at(s, segment_at(s, at.rank), at.position));
  }
  u64 rest = slots ? u64(vertices) - last : u64(vertices) + 1;
  fill(indptr, last + 1, rest, edges, later);
}

// A warp's room: for a column that it packs, or for what it lists.
union Room {
  Packing<u32> targets;
  Starts starts;
};
