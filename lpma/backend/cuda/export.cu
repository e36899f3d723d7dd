// CSR from the slots, and the slots themselves: one read of the store, one write of the arrays.
// Rows (keys to indptr and indices) and columns (weights and times) are written apart, because most
// snapshots are read for their rows alone: see late.py.
//
// Idea: the slots are in CSR order already. So a group of segments (tiles.cuh) becomes a range of
// entries whose place follows from the tree of counts: nothing is scanned, and nothing is read
// back. Where the store holds vertex markers, which are no edges, a launch before counts them by
// group (8 bytes a slot more).
//
// indptr is written where the source changes: a change from a to b writes entries a + 1 … b. A gap
// of more than SHORT entries is written by its warp. One of LONG or more is noted in pieces, which
// the blocks of `fill_pieces` share, so that no thread is held up by many absent vertices.
//
// Bytes: rows take 8 read and 4 written an edge, 4 a segment and 8 a vertex; columns of float32
// weights and int64 times 12 read and 12 written an edge, and 8 more read where there are markers.
// Rows of 11 M edges over 2^20 vertices in segments of 32 move 0.14 GB, 0.034 ms at 4.2 TB/s;
// their columns 0.27 GB, 0.063 ms. To follow the last rows with changed keys merged in would move 8
// bytes an edge and 16 a vertex, 0.025 ms, but needs a launch more to find the keys' places, and the
// memory of the last rows. Lanes load 4 or 8 bytes, because a warp's loads are whole sectors
// then; pairs would be stored in halves of sectors, since rows start anywhere.
#include "lpma/backend/cuda/tiles.cuh"

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

// The source of the last filled slot before segment `rank`; `before` slots precede the segment.
__device__ __forceinline__ u32 source_before(const Store& s, u32 rank, u64 before) {
  if (before == 0) return NO_SOURCE;
  u32 count = slots_in(s, rank - 1);
  if (count) return key_src(key_at(s, segment_at(s, rank - 1), count - 1));
  Found last = slot_number(s, before - 1);
  return key_src(key_at(s, segment_at(s, last.rank), last.position));
}

// Write the entries of indptr that a tile's changes of source set. `to`: the entry at which each
// lane's edge goes.
__device__ __forceinline__ void write_indptr(i64* indptr, bool filled, u32 source, u32 before,
                                             i64 to, const Pieces& later) {
  u32 change = filled ? source - before : 0;
  if (change) indptr[source] = to;
  u32 rest = change ? change - 1 : 0;  // entries before + 1 … source - 1
  if (rest <= SHORT)
    for (u32 i = 1; i <= rest; ++i) indptr[before + i] = to;
  for (u32 wide = __ballot_sync(ALL_LANES, rest > SHORT); wide; wide &= wide - 1) {
    int lane = __ffs(wide) - 1;
    fill(indptr, __shfl_sync(ALL_LANES, before, lane) + 1, __shfl_sync(ALL_LANES, rest, lane),
         __shfl_sync(ALL_LANES, to, lane), later);
  }
}

// markers[g]: the number of markers in group g.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_markers(const __grid_constant__ Store s, i64* markers) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u64 found = 0;
#pragma unroll TOGETHER
  for (u32 tile = 0; tile < TILES; ++tile) {
    Row row = read_row<true, false>(s, group, tile);
    found += row.filled && is_marker(row.key);
  }
  found = warp_sum(found);
  if (lane_id() == 0) markers[group.first / GROUP] = i64(found);
}

// indptr and indices of rows 0 … vertices - 1, of `edges` edges. markers: the running sums
// (inclusive) of what count_markers wrote, null where the store has none. The first group also
// writes the entries after the last source.
extern "C" __global__ void __launch_bounds__(THREADS)
    write_rows(const __grid_constant__ Store s, const i64* markers, i64 vertices, i64 edges,
               i64* indptr, u32* indices, u32* num_pieces, Piece* pieces) {
  Pieces later = {num_pieces, pieces};
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u32 lane = lane_id(), below = (1u << lane) - 1;
  u64 before = slots_before(s, group.first);
  u32 source = source_before(s, group.first, before);
  i64 out = i64(before);
  if (markers && group.first) out -= markers[group.first / GROUP - 1];
  read_tiles<true, false>(s, group, [&](const Row& row) {
    bool edge = row.filled && !(markers && is_marker(row.key));
    u32 filled = __ballot_sync(ALL_LANES, row.filled), edges_here = __ballot_sync(ALL_LANES, edge);
    if (!filled) return;
    i64 to = out + __popc(edges_here & below);
    if (edge) indices[to] = key_dst(row.key);
    u32 left = filled & below, own = key_src(row.key);
    u32 neighbor = __shfl_sync(ALL_LANES, own, left ? 31 - __clz(left) : 0);
    write_indptr(indptr, row.filled, own, left ? neighbor : source, to, later);
    source = __shfl_sync(ALL_LANES, own, 31 - __clz(filled));
    out += __popc(edges_here);
  });
  if (group.first) return;
  u32 slots = s.counts[1], last = NO_SOURCE;
  if (slots) {
    Found at = slot_number(s, slots - 1);
    last = key_src(key_at(s, segment_at(s, at.rank), at.position));
  }
  u64 rest = slots ? u64(vertices) - last : u64(vertices) + 1;
  fill(indptr, last + 1, rest, edges, later);
}

// Write the entries that write_rows noted.
extern "C" __global__ void __launch_bounds__(THREADS)
    fill_pieces(const u32* num_pieces, const Piece* pieces, i64* indptr) {
  for (u32 i = blockIdx.x; i < *num_pieces; i += gridDim.x) {
    Piece piece = pieces[i];
    for (u32 k = threadIdx.x; k < piece.count; k += blockDim.x)
      indptr[u64(piece.first) + k] = piece.value;
  }
}

// The values of a group's edges; `out` edges precede it. MARKERS: some slots may be markers.
template <bool MARKERS>
__device__ __forceinline__ void write_values(const Store& s, const Group& group, u64 out,
                                             Weight* weights, i64* times) {
  u32 below = (1u << lane_id()) - 1;
  read_tiles<MARKERS, true>(s, group, [&](const Row& row) {
    bool edge = row.filled && !(MARKERS && is_marker(row.key));
    u32 edges = __ballot_sync(ALL_LANES, edge);
    u64 to = out + __popc(edges & below);
    out += __popc(edges);
    if (!edge) return;
#if WEIGHT_BYTES
    weights[to] = row.weight;
#endif
#if TIMES
    times[to] = row.time;
#endif
  });
}

// Weights and times of all edges, in the order of `write_rows`; markers: as there.
extern "C" __global__ void __launch_bounds__(THREADS)
    write_columns(const __grid_constant__ Store s, const i64* markers, Weight* weights,
                  i64* times) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u64 out = slots_before(s, group.first);
  if (markers) {
    if (group.first) out -= markers[group.first / GROUP - 1];
    write_values<true>(s, group, out, weights, times);
  } else {
    write_values<false>(s, group, out, weights, times);
  }
}

// All filled slots in key order, markers included. Columns that are not wanted are null.
extern "C" __global__ void __launch_bounds__(THREADS)
    write_slots(const __grid_constant__ Store s, u64* keys, Weight* weights, i64* times) {
  Group group = group_of_warp(s);
  if (group.first >= 1u << s.m) return;
  u32 below = (1u << lane_id()) - 1;
  u64 out = slots_before(s, group.first);
  read_tiles<true, true>(s, group, [&](const Row& row) {
    u32 filled = __ballot_sync(ALL_LANES, row.filled);
    u64 to = out + __popc(filled & below);
    out += __popc(filled);
    if (!row.filled) return;
    if (keys) keys[to] = row.key;
#if WEIGHT_BYTES
    if (weights) weights[to] = row.weight;
#endif
#if TIMES
    if (times) times[to] = row.time;
#endif
  });
}
