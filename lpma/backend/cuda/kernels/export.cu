// CSR from the slots, and the slots themselves: one read of the store, one write of the arrays.
// Rows (keys to indptr and indices) and columns (weights and times) are written apart, because most
// snapshots are read for their rows alone: see deferred.py.
//
// Idea: the slots are in CSR order already. So a group of segments (tiles.cuh) becomes a range of
// entries whose place follows from the tree of counts: nothing is scanned, and nothing is read
// back. Where the store holds vertex markers, which are no edges, a launch before counts them by
// group (8 bytes a slot more). How a warp reads a group and writes a column is in pairs.cuh.
//
// Bytes: rows take 8 read and 4 written an edge, 4 a segment and 8 a vertex; columns of float32
// weights and int64 times 12 read and 12 written an edge, and 8 more read where there are markers.
// How many blocks a multiprocessor is to hold was measured: more of them have too few registers.
#include "lpma/backend/cuda/kernels/starts.cuh"

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
  if (group.first == 0) write_last_starts(s, vertices, edges, indptr, later);
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
