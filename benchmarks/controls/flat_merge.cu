// The control: all edges in flat arrays sorted by key, every batch merged into a second copy.
//
// Idea: after a merge an edge stands where it stood, moved by the edges inserted (deleted) before
// it. So the batch alone is searched and counted (`locate`, `sum_counts`), and then every edge
// finds its new place from its place in the batch: one pass over the arrays, each edge read once
// and written once, no two passes over the keys and no order among blocks (`merge`).
//
// Trick: the batch's part that falls among a tile's edges is found beforehand, one search a tile;
// a tile with no part of the batch, the common case, is a copy. A thread has its edges' loads in
// flight together.
//
// Fixed when compiled: COLUMNS (0: keys only; 1: float32 weights and int64 times too), ITEMS
// (edges a thread). Arrays hold a multiple of the tile, so that loads need no bound.
#include "benchmarks/controls/sorted_batch.cuh"

constexpr u32 THREADS = 256;
constexpr u32 TILE = THREADS * ITEMS;

// For each row j of the batch: `place`, the stored edges before it; rows that are not `counted`
// yet (see `sum_counts`). Inserting, a row is counted that adds no edge; deleting, one that
// removes one. Blocks from `row_blocks` on: tile_row[t], the rows before tile t's first edge.
extern "C" __global__ void __launch_bounds__(COUNTED)
    locate(const u64* stored, const u64* size, const u64* keys, const i64* order,
           const float* weights, const i64* times, u32 k, int deleting, u32 row_blocks, u32 tiles,
           u32* place, u32* counted, u32* blocks, float* row_weight, i64* row_time,
           u32* tile_row) {
  u64 n = *size;
  if (blockIdx.x >= row_blocks) {
    u64 t = u64(blockIdx.x - row_blocks) * COUNTED + threadIdx.x;
    if (t <= tiles) tile_row[t] = t * TILE < n ? lower_bound(keys, k, stored[t * TILE]) : k;
    return;
  }
  u32 j = blockIdx.x * COUNTED + threadIdx.x;
  bool flag = false;
  if (j < k) {
    u64 key = keys[j], at = lower_bound(stored, n, key);
    bool head = j == 0 || keys[j - 1] != key, found = at < n && stored[at] == key;
    flag = deleting ? head && found : !head || found;
    place[j] = at;
#if COLUMNS
    if (head && !deleting)
      fold_run(keys, k, j, order, weights, times, &row_weight[j], &row_time[j]);
#endif
  }
  count_flags(flag, j, k + 1, counted, blocks);
}

extern "C" __global__ void __launch_bounds__(COUNTED)
    sum_counts(u32* blocks, u32 count, const u64* size, u64* new_size, u32 k, int deleting) {
  u32 total = sum_blocks(blocks, count);
  if (threadIdx.x == 0) *new_size = *size - total + (deleting ? 0 : k);
}

// The number of keys in rows lo … hi - 1 smaller than each of the thread's, all searches at once.
__device__ __forceinline__ void rows_before(const u64* keys, u32 lo, u32 hi, const u64* wanted,
                                            u32* row) {
  for (u32 i = 0; i < ITEMS; ++i) row[i] = lo;
  u32 left = hi - lo;
  for (; left > 1; left -= left / 2) {
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i)
      if (keys[row[i] + left / 2 - 1] < wanted[i]) row[i] += left / 2;
  }
#pragma unroll
  for (u32 i = 0; i < ITEMS; ++i) row[i] += left && keys[row[i]] < wanted[i];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    merge(const u64* stored, const float* stored_weight, const i64* stored_time, const u64* size,
          const u64* keys, const float* row_weight, const i64* row_time, const u32* place,
          const u32* counted, const u32* blocks, const u32* tile_row, u32 k, int deleting,
          u32 tiles, u64* to_keys, float* to_weight, i64* to_time) {
  if (blockIdx.x >= tiles) {  // rows: each new key goes to its place
    u32 j = (blockIdx.x - tiles) * THREADS + threadIdx.x;
    if (j >= k || deleting) return;
    u32 before = flagged_before(counted, blocks, j);
    if (flagged_before(counted, blocks, j + 1) != before) return;  // adds no edge
    u64 to = u64(place[j]) + j - before;
    to_keys[to] = keys[j];
#if COLUMNS
    to_weight[to] = row_weight[j];
    to_time[to] = row_time[j];
#endif
    return;
  }
  u64 first = u64(blockIdx.x) * TILE + threadIdx.x;
  u64 key[ITEMS];
#pragma unroll
  for (u32 i = 0; i < ITEMS; ++i) key[i] = __ldcs(stored + first + i * THREADS);
#if COLUMNS
  float weight[ITEMS];
  i64 time[ITEMS];
#pragma unroll
  for (u32 i = 0; i < ITEMS; ++i) {
    weight[i] = __ldcs(stored_weight + first + i * THREADS);
    time[i] = __ldcs(stored_time + first + i * THREADS);
  }
#endif
  u64 n = *size;
  u32 lo = tile_row[blockIdx.x], hi = tile_row[blockIdx.x + 1];
  u32 row[ITEMS];
  rows_before(keys, lo, hi, key, row);
  i64 shift = (deleting ? 0 : i64(lo)) - flagged_before(counted, blocks, lo);
#pragma unroll
  for (u32 i = 0; i < ITEMS; ++i) {
    u64 at = first + i * THREADS;
    if (at >= n) continue;
    if (lo < hi) {
      shift = (deleting ? 0 : i64(row[i])) - flagged_before(counted, blocks, row[i]);
      if (row[i] < hi && keys[row[i]] == key[i]) {
        if (deleting) continue;
#if COLUMNS
        weight[i] += row_weight[row[i]];
        time[i] = row_time[row[i]];
#endif
      }
    }
    u64 to = at + shift;
    __stcs(to_keys + to, key[i]);
#if COLUMNS
    __stcs(to_weight + to, weight[i]);
    __stcs(to_time + to, time[i]);
#endif
  }
}
