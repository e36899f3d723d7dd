// Copying columns of all slots in key order, the gaps left out: a warp takes a group of segments
// (tiles.cuh), a lane two neighbouring slots at a time.
//
// Idea: a *stretch* is what a warp has under way at once: TILES_AT_ONCE times 64 slots, which is a
// whole group of the usual store. All its loads are issued before the first is waited for. A pair
// is one load of up to 16 bytes, since segments start at multiples of their size. Segments are
// packed, so the place of a pair among the filled slots follows from the counts.
//
// Trick: a stretch's values go to any entry of a column. So they are packed in shared memory first,
// as far past a multiple of 16 bytes as they will be there, and then written 16 bytes a lane: whole
// sectors, in few instructions.
//
// Requires: columns that are written begin at multiples of 16 bytes, as CuPy's do.
#pragma once
#include "lpma/backend/cuda/kernels/tiles.cuh"

constexpr u32 PAIR_TILES = GROUP * SEGMENT / 64;  // of 64 slots, in a group
constexpr u32 TILES_AT_ONCE = PAIR_TILES < 8 ? PAIR_TILES : 8;
constexpr u32 STRETCHES = PAIR_TILES / TILES_AT_ONCE;

template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T first, second;
};

// A lane's pairs of a stretch. Bits 2 i and 2 i + 1 of `filled` say whether the slots of pair i
// are; place[i]: how many filled slots of the stretch come before it. Values may be anything where
// slots are not filled, or a column is not wanted.
struct Stretch {
  u32 filled;
  u32 place[TILES_AT_ONCE];
  Pair<u64> keys[TILES_AT_ONCE];
  Pair<Weight> weights[TILES_AT_ONCE];
  Pair<i64> times[TILES_AT_ONCE];
};

__device__ __forceinline__ bool has_first(u32 bits, u32 tile) { return bits >> 2 * tile & 1; }
__device__ __forceinline__ bool has_second(u32 bits, u32 tile) { return bits >> 2 * tile & 2; }

template <typename T>
__device__ __forceinline__ Pair<T> pair_at(const T* column) {
  return *reinterpret_cast<const Pair<T>*>(column);
}

// Stretch `number` of a group. `before`: the filled slots of the group before segment first + lane.
template <bool KEYS, bool VALUES>
__device__ __forceinline__ Stretch read_stretch(const Store& s, const Group& group, u32 before,
                                                u32 number) {
  Stretch read;
  read.filled = 0;
  u32 held = before << 16 | group.count, begin = 0;
#pragma unroll
  for (u32 tile = 0; tile < TILES_AT_ONCE; ++tile) {
    u32 slot = 64 * (number * TILES_AT_ONCE + tile) + 2 * lane_id();
    u32 i = slot / SEGMENT, position = slot % SEGMENT;
    u32 there = __shfl_sync(ALL_LANES, held, i), count = there & 0xFFFF;
    u32 place = (there >> 16) + min(position, count);
    if (STRETCHES > 1 && tile == 0) begin = __shfl_sync(ALL_LANES, place, 0);
    read.place[tile] = place - begin;
    if (position >= count) continue;
    read.filled |= (position + 1 < count ? 3u : 1u) << 2 * tile;
    Slot at = segment_at(s, group.first + i);
    u64 index = at.index + position;
    if (KEYS) read.keys[tile] = pair_at(s.keys[at.level] + index);
    if (VALUES && WEIGHT_BYTES) read.weights[tile] = pair_at(s.weights[at.level] + index);
    if (VALUES && TIMES) read.times[tile] = pair_at(s.times[at.level] + index);
  }
  return read;
}

// How many slots are marked in the bits of all lanes.
__device__ __forceinline__ u32 count_marked(u32 bits) { return lanes_sum(__popc(bits)); }

// Of a tile's pairs: which lanes' first and second slots are marked.
struct Marked {
  u32 first, second;

  __device__ __forceinline__ Marked(bool first, bool second)
      : first(__ballot_sync(ALL_LANES, first)), second(__ballot_sync(ALL_LANES, second)) {}
  __device__ __forceinline__ u32 count() const { return __popc(first) + __popc(second); }
  // How many come before this lane's pair.
  __device__ __forceinline__ u32 before() const {
    return lanes_before(first) + lanes_before(second);
  }
};

// The slots of a stretch of which `stays(tile, is_second)` is true; `place` counts only these from
// now on. It is asked of filled slots alone.
template <class Stays>
__device__ __forceinline__ u32 leave_out(Stretch& read, Stays stays) {
  u32 left = read.filled, gone = 0;
#pragma unroll
  for (u32 tile = 0; tile < TILES_AT_ONCE; ++tile) {
    bool first = has_first(read.filled, tile) && !stays(tile, false);
    bool second = has_second(read.filled, tile) && !stays(tile, true);
    Marked out(first, second);
    left &= ~((first ? 1u : 0u) << 2 * tile | (second ? 2u : 0u) << 2 * tile);
    read.place[tile] -= gone + out.before();
    gone += out.count();
  }
  return left;
}

// The value of a slot of a pair.
template <typename T>
__device__ __forceinline__ T of_pair(const Pair<T>& pair, bool is_second) {
  return is_second ? pair.second : pair.first;
}

// Which slots hold edges, and no markers; `place` counts only these from now on.
__device__ __forceinline__ u32 leave_out_markers(Stretch& read) {
  return leave_out(read, [&](u32 tile, bool is_second) {
    return !is_marker(of_pair(read.keys[tile], is_second));
  });
}

// Where a warp packs a stretch of a column.
template <typename T>
struct alignas(16) Packing {
  static constexpr u32 EACH = 16 / sizeof(T);
  T values[64 * TILES_AT_ONCE + EACH];
};

// Write a column's values in `marked` slots, which are those that read.place counts, to entries
// first … first + count - 1.
template <typename T>
__device__ __forceinline__ void write_column(Packing<T>& packing, const Stretch& read, u32 marked,
                                             const Pair<T>* pairs, T* column, u64 first,
                                             u32 count) {
  constexpr u32 EACH = Packing<T>::EACH;
  u32 skip = u32(first) % EACH, end = skip + count;
#pragma unroll
  for (u32 tile = 0; tile < TILES_AT_ONCE; ++tile) {
    u32 place = skip + read.place[tile];
    bool is_first = has_first(marked, tile);
    if (is_first) packing.values[place] = pairs[tile].first;
    if (has_second(marked, tile)) packing.values[place + is_first] = pairs[tile].second;
  }
  __syncwarp();
  T* to = column + (first - skip);
  for (u32 i = EACH * lane_id(); i < end; i += 32 * EACH) {
    if (i >= skip && i + EACH <= end) {
      *reinterpret_cast<int4*>(to + i) = *reinterpret_cast<const int4*>(packing.values + i);
    } else {
      for (u32 k = max(i, skip); k < min(i + EACH, end); ++k) to[k] = packing.values[k];
    }
  }
  __syncwarp();
}
