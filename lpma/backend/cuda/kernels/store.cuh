// A store as kernels see it: its levels by address, the tree over them, and the ways down the tree.
//
// Source: the paper, Sections III-A and III-B. The layout below is that of lpma/pma/layout.py;
// a test compares the two. A kernel gets a Store by value, so the table of levels lies in constant
// memory: an expansion copies a few words and no edge.
//
// Fixed when compiled: SEGMENT (slots a segment), WEIGHT_BYTES (0, 4 or 8) and TIMES (0 or 1).
// Columns that are off cost nothing.
//
// Encodings: an edge's key is source << 32 | target; a vertex marker's target is MARKER. Windows
// are numbered as in a heap: the root is 1, the children of p are 2 p and 2 p + 1, and leaf window
// 2^m + r is the segment of rank r. The fence of a window is the first key of its right half. The
// segment that begins there has the window's number as its heap number; the head segment, of rank
// 0, has 0.
//
// Requires: at most 2^31 slots, so that window numbers (below 2^(m+1), with segments of 2 slots or
// more) and the slots of any window fit 32 bits. The host checks it: see `MAX_SLOTS`.
#pragma once
#include "lpma/cuda/search.cuh"

#if WEIGHT_BYTES == 8
typedef double Weight;
#else
typedef float Weight;
#endif

// Threads of a block. The sort (sort.cu) and edge queries (query.cu) have blocks of other sizes.
constexpr int THREADS = 256, WARPS = THREADS / 32;

constexpr int LEVELS = 34;  // m <= 33
constexpr u64 LAST_FENCE = ~0ull;  // above every key: ids stop at 2^32 - 2
constexpr u32 MARKER = ~0u;        // the dst half of a vertex marker's key

struct Store {
  int m;             // levels beside the head; 2^m segments
  int parts;         // of the last level, which are there: its other segments must not be read
  u64* keys[LEVELS];
  Weight* weights[LEVELS];  // null where the store keeps none, as are times
  i64* times[LEVELS];
  u64* fences;  // u64[2^m] by heap number; [0] is unused
  u32* counts;  // u32[2^(m+1)], filled slots by window; [0] is unused
};

// A slot: its level and its index there, which address it in all columns.
struct Slot {
  int level;
  u64 index;
};

__device__ __forceinline__ u64 edge_key(u32 src, u32 dst) { return (u64(src) << 32) | dst; }
__device__ __forceinline__ u32 key_src(u64 key) { return u32(key >> 32); }
__device__ __forceinline__ u32 key_dst(u64 key) { return u32(key); }
__device__ __forceinline__ bool is_marker(u64 key) { return key_dst(key) == MARKER; }

// The first slot of segment `rank`.
__device__ __forceinline__ Slot segment_at(const Store& s, u32 rank) {
  if (rank == 0) return {0, 0};
  int z = __ffs(rank) - 1, level = s.m - z;
  u32 offset = u32(u64(rank) >> (z + 1));
  // Levels lie part by part: lpma/pma/layout.py.
  if (level > 2) offset = (__brev(offset) >> 30) << (level - 3) | offset >> 2;
  return {level, u64(offset) * SEGMENT};
}

// The heap number of a segment: that of the window whose fence is the segment's first key; 0 for
// the head.
__device__ __forceinline__ u32 heap_number(const Store& s, u32 rank) {
  return rank == 0 ? 0 : ((1u << s.m) + rank) >> __ffs(rank);
}

// How many segments of lower rank than this are there (layout.py). A digit of the constants says it
// for a rank from 0 to 7.
__device__ __forceinline__ u64 there_before(const Store& s, u64 rank) {
  u32 before = s.parts > 2 ? 0x76543210 : s.parts == 2 ? 0x65433210 : 0x54433210;
  return (rank >> 3) * (4 + s.parts) + (before >> 4 * (rank & 7) & 15);
}

// The rank of segment `number`, in key order, of those that are there. As above.
__device__ __forceinline__ u64 rank_of_number(const Store& s, u64 number) {
  if (s.parts == 4) return number;
  u32 ranks = s.parts > 2 ? 0x76543210 : s.parts == 2 ? 0x654210 : 0x64210;
  u32 period = 4 + s.parts, periods = u32(number) / period;
  return periods << 3 | (ranks >> 4 * (u32(number) - periods * period) & 15);
}

__device__ __forceinline__ u32 leaf_window(const Store& s, u32 rank) { return (1u << s.m) + rank; }

// Where the bounds of a window stand (lpma/pma/density.py).
__device__ __forceinline__ u32 bound_of(int layer, u32 window) { return 8 * layer + (window & 7); }

__device__ __forceinline__ u32 slots_in(const Store& s, u32 rank) {
  return s.counts[leaf_window(s, rank)];
}

__device__ __forceinline__ u64 key_at(const Store& s, Slot at, u32 position = 0) {
  return s.keys[at.level][at.index + position];
}

__device__ __forceinline__ Weight weight_at(const Store& s, Slot at, u32 position = 0) {
  return WEIGHT_BYTES ? s.weights[at.level][at.index + position] : Weight(0);
}

__device__ __forceinline__ i64 time_at(const Store& s, Slot at, u32 position = 0) {
  return TIMES ? s.times[at.level][at.index + position] : 0;
}

__device__ __forceinline__ void set_value(const Store& s, Slot at, u32 position, Weight weight,
                                          i64 time) {
  if (WEIGHT_BYTES) s.weights[at.level][at.index + position] = weight;
  if (TIMES) s.times[at.level][at.index + position] = time;
}

// The number of keys below `key` among the first `count` of a segment, which are sorted.
__device__ __forceinline__ u32 lower_bound(const Store& s, Slot at, u32 count, u64 key) {
  return lower_bound(s.keys[at.level] + at.index, 0u, count, key);
}

// The rank of the segment that `key` belongs to: the last one whose fence is not above it.
__device__ __forceinline__ u32 rank_of_key(const Store& s, u64 key) {
  u32 p = 1;
  for (int i = 0; i < s.m; ++i) p = 2 * p + (key >= s.fences[p]);
  return p - (1u << s.m);
}

// The first filled slot whose key is not below `key`; rank 2^m where there is none. `before` is the
// number of filled slots to its left: the walk adds up the counts that it passes on the right. It
// ends in the last segment whose fence is smaller than the key.
struct Found {
  u32 rank;
  u32 position;
  u64 before;
};

__device__ __forceinline__ Found first_at_or_after(const Store& s, u64 key) {
  u32 p = 1;
  u64 before = 0;
  for (int i = 0; i < s.m; ++i) {
    bool right = key > s.fences[p];
    p = 2 * p + right;
    if (right) before += s.counts[p - 1];
  }
  u32 leaves = 1u << s.m, rank = p - leaves;
  u32 count = s.counts[p];
  u32 position = lower_bound(s, segment_at(s, rank), count, key);
  before += position;
  while (position >= count) {
    position = 0;
    if (++rank == leaves) break;
    count = slots_in(s, rank);
  }
  return {rank, position, before};
}

// The segment and position of filled slot number `n` in key order. REQUIRES: n < counts[1].
__device__ __forceinline__ Found slot_number(const Store& s, u64 n) {
  u32 p = 1;
  u64 left = n;
  for (int i = 0; i < s.m; ++i) {
    u32 held = s.counts[2 * p];
    bool right = left >= held;
    p = 2 * p + right;
    if (right) left -= held;
  }
  return {p - (1u << s.m), u32(left), n};
}
