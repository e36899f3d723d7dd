// CSR from the slots, and the slots themselves: one read of the store, one write of the arrays.
// Rows (keys to indptr and indices) and columns (weights and times) are written apart, because most
// snapshots are read for their rows alone: see deferred.py.
//
// Idea: the slots are in CSR order already. So a group of segments (tiles.cuh) becomes a range of
// entries whose place follows from the tree of counts: nothing is scanned, and nothing is read
// back. Where the store holds vertex markers, which are no edges, a launch before counts them by
// group (8 bytes a slot more). How a warp reads a group and writes a column is in pairs.cuh.
//
// indptr is written where the source changes: a change from a to b writes entries a + 1 … b. A warp
// lists the changes of its slots first, so that all its lanes have some to write. A gap of more
// than SHORT entries is written by the whole warp. One of LONG or more is noted in pieces, which
// the blocks of `fill_pieces` share, so that no thread is held up by many absent vertices.
//
// Bytes: rows take 8 read and 4 written an edge, 4 a segment and 8 a vertex; columns of float32
// weights and int64 times 12 read and 12 written an edge, and 8 more read where there are markers.
// How many blocks a multiprocessor is to hold was measured: more of them have too few registers.
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

// markers[g]: the number of markers in group g.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_markers(const __grid_constant__ Store s, i64* markers) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u64 found = 0;
#pragma unroll TOGETHER
  for (u32 tile = 0; tile < TILES; ++tile) {
    Spot spot = spot_in(s, group, tile);
    found += spot.filled && is_marker(key_at(s, spot.at));
  }
  found = warp_sum(found);
  if (lane_id() == 0) markers[group.first / GROUP] = i64(found);
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

// A warp's room: for a column that it packs, or for what it lists.
union Room {
  Packing<u32> targets;
  Starts starts;
};

// The rows of a group, before which there are `before` slots and `out` edges. MARKERS: some slots
// may be markers.
template <bool MARKERS>
__device__ __forceinline__ void write_group_rows(const Store& s, const Group& group, u64 before,
                                                 u64 out, Room& room, i64* indptr, u32* indices,
                                                 const Pieces& later) {
  u32 behind = slots_behind(s, group.first);
  u32 in_group = warp_inclusive(group.count) - group.count, source = NO_SOURCE;
#pragma unroll 1
  for (u32 number = 0; number < STRETCHES; ++number) {
    Stretch read = read_stretch<true, false>(s, group, in_group, number);
    if (number == 0) source = source_before(s, group.first, behind, before);
    u32 edges = MARKERS ? leave_out_markers(read) : read.filled, count = count_marked(edges);
    Pair<u32> targets[TILES_AT_ONCE];
#pragma unroll
    for (u32 tile = 0; tile < TILES_AT_ONCE; ++tile)
      targets[tile] = {key_dst(read.keys[tile].first), key_dst(read.keys[tile].second)};
    write_column(room.targets, read, edges, targets, indices, out, count);
    u32 listed = list_starts(room.starts, read, edges);
    write_starts(room.starts, listed, source, out, indptr, later);
    out += count;
  }
}

// indptr and indices of rows 0 … vertices - 1, of `edges` edges. markers: the running sums
// (inclusive) of what count_markers wrote, null where the store has none. The first group also
// writes the entries after the last source.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    write_rows(const __grid_constant__ Store s, const i64* markers, i64 vertices, i64 edges,
               i64* indptr, u32* indices, u32* num_pieces, Piece* pieces) {
  __shared__ Room rooms[WARPS];
  Room& room = rooms[warp_id()];
  Pieces later = {num_pieces, pieces};
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u64 before = slots_before(s, group.first);
  if (markers) {
    u64 gone = group.first ? markers[group.first / GROUP - 1] : 0;
    write_group_rows<true>(s, group, before, before - gone, room, indptr, indices, later);
  } else {
    write_group_rows<false>(s, group, before, before, room, indptr, indices, later);
  }
  if (group.first) return;
  u32 slots = s.counts[1], last = NO_SOURCE;
  if (slots) {
    Found at = slot_number(s, slots - 1);
    last = key_src(key_at(s, segment_at(s, at.rank), at.position));
  }
  u64 rest = slots ? u64(vertices) - last : u64(vertices) + 1;
  fill(indptr, last + 1, rest, edges, later);
}

// Write the entries that write_rows noted. The next launches of both count in `other`.
extern "C" __global__ void __launch_bounds__(THREADS)
    fill_pieces(const u32* num_pieces, u32* other, const Piece* pieces, i64* indptr) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *other = 0;
  for (u32 i = blockIdx.x; i < *num_pieces; i += gridDim.x) {
    Piece piece = pieces[i];
    for (u32 k = threadIdx.x; k < piece.count; k += blockDim.x)
      indptr[u64(piece.first) + k] = piece.value;
  }
}

// A warp's room to pack a column in, whichever it is.
union AnyPacking {
  Packing<u64> keys;
  Packing<Weight> weights;
  Packing<i64> times;
};

// The columns of a group that are wanted; `out` entries precede it. MARKERS: some slots may be
// markers, which are left out. KEYS: keys are wanted.
template <bool MARKERS, bool KEYS>
__device__ __forceinline__ void write_values(const Store& s, const Group& group, u64 out,
                                             AnyPacking& packing, u64* keys, Weight* weights,
                                             i64* times) {
  u32 in_group = warp_inclusive(group.count) - group.count;
#pragma unroll 1
  for (u32 number = 0; number < STRETCHES; ++number) {
    Stretch read = read_stretch<MARKERS || KEYS, true>(s, group, in_group, number);
    u32 slots = MARKERS ? leave_out_markers(read) : read.filled, count = count_marked(slots);
    if (KEYS) write_column(packing.keys, read, slots, read.keys, keys, out, count);
    if (WEIGHT_BYTES && weights)
      write_column(packing.weights, read, slots, read.weights, weights, out, count);
    if (TIMES && times) write_column(packing.times, read, slots, read.times, times, out, count);
    out += count;
  }
}

// Columns of all edges, in the order of `write_rows`, and `markers` as there; with null for it, of
// all filled slots. Columns that are not wanted are null; keys go without `markers`.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    write_columns(const __grid_constant__ Store s, const i64* markers, u64* keys, Weight* weights,
                  i64* times) {
  __shared__ AnyPacking packings[WARPS];
  AnyPacking& packing = packings[warp_id()];
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u64 out = slots_before(s, group.first);
  if (markers) {
    if (group.first) out -= markers[group.first / GROUP - 1];
    write_values<true, false>(s, group, out, packing, keys, weights, times);
  } else if (keys) {
    write_values<false, true>(s, group, out, packing, keys, weights, times);
  } else {
    write_values<false, false>(s, group, out, packing, keys, weights, times);
  }
}
