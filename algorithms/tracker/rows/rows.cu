// Changed edges merged into simple rows (algorithms/tracker/rows/cuda.py).
//
// Idea: the keys of edges that may have changed are sorted, and searched for in the rows. The
// effect of one on the number of entries is +1, −1 or 0. The sum of the effects before an entry is
// the distance by which it moves. So the old entries are runs between changes, each moved by one
// distance: 4 bytes read and 4 written for every entry.
//
// An effect is a word of two counters, inserted << 32 | deleted. One running sum then gives both
// the distances, and the places in the lists of inserted and deleted entries.
#include "lpma/cuda/search.cuh"

constexpr u64 INSERTED = 1ull << 32, DELETED = 1;
constexpr u64 NONE = ~0ull;  // a key after all others; its place is the end of the rows
constexpr i64 TILE = 4096;   // entries that a block moves, as in cuda.py

__device__ __forceinline__ i64 shift(u64 sum) { return i64(sum >> 32) - i64(u32(sum)); }

// keys[i] and keys[count + i]: source << 33 | target << 1 | whether the edge exists now, in both
// directions; NONE if it cannot be an edge of the view. touched: source << 32 | target.
//
// A loop and a vertex by itself are noted instead: alone[u] is whether u has a loop, alone[n + u]
// whether it was added by itself. A key that is listed twice has the same value both times.
// u = 2^32 - 1 is no vertex, and larger than any n.
extern "C" __global__ void make_keys(const u64* touched, const bool* there, i64 count, u64* keys,
                                     i64 n, bool* alone) {
  i64 i = thread_number();
  if (i >= count) return;
  u64 u = touched[i] >> 32, v = u32(touched[i]);
  bool is_edge = u != v && v != ALL_LANES;
  keys[i] = is_edge ? u << 33 | v << 1 | there[i] : NONE;
  keys[count + i] = is_edge ? v << 33 | u << 1 | there[i] : NONE;
  if (!is_edge && i64(u) < n) alone[v == u ? u : n + u] = there[i];
}

// places[j]: where key j's entry is in the rows, or would be. Of equal keys only the last has an
// effect. It is then also the last key at its place. effects[0] is 0, and effects[j + 1] of key j.
extern "C" __global__ void search(const u64* keys, i64 count, const i64* indptr,
                                  const u32* indices, i64 n, i64* places, u64* effects) {
  i64 j = thread_number();
  if (j == count) effects[0] = 0;
  if (j >= count) return;
  u64 key = keys[j];
  i64 u = key >> 33;
  u32 v = u32(key >> 1);
  i64 end = indptr[min(u + 1, n)], at = lower_bound(indices, indptr[min(u, n)], end, v);
  bool is_last = (j + 1 == count || keys[j + 1] != key) && key != NONE;
  bool there = key & 1, was = at < end && indices[at] == v;
  places[j] = at;
  effects[j + 1] = !is_last || there == was ? 0 : there ? INSERTED : DELETED;
}

// Writes the inserted entries into `indices`, and lists the inserted and the deleted ones, as
// source << 32 | target. sums[j], for j up to `count`: the sum of the effects before j.
extern "C" __global__ void list_changes(const u64* keys, i64 count, const i64* places,
                                        const u64* sums, u32* indices, u64* inserted,
                                        u64* deleted) {
  i64 j = thread_number();
  if (j >= count) return;
  u64 sum = sums[j], effect = sums[j + 1] - sum;
  u64 edge = keys[j] >> 33 << 32 | u32(keys[j] >> 1);
  if (effect == DELETED) deleted[u32(sum)] = edge;
  if (effect != INSERTED) return;
  inserted[sum >> 32] = edge;
  indices[places[j] + shift(sum)] = u32(edge);
}

// A thread for each of n + 1 row starts, which the effects of smaller sources move; and whether the
// row is a vertex.
extern "C" __global__ void start_rows(const u64* keys, i64 count, const u64* sums,
                                      const i64* old, i64 old_n, i64 n, const bool* alone,
                                      i64* indptr, bool* present) {
  __shared__ i64 bounds[2];
  i64 first = i64(blockIdx.x) * blockDim.x, u = thread_number();
  if (threadIdx.x == 0) bounds[0] = lower_bound(keys, 0, count, u64(first) << 33);
  if (threadIdx.x == 32)
    bounds[1] = lower_bound(keys, 0, count, u64(first + blockDim.x) << 33);
  __syncthreads();
  auto moved = [&](i64 row, i64 key) { return old[min(row, old_n)] + shift(sums[key]); };
  if (u > n) return;
  i64 key = lower_bound(keys, bounds[0], bounds[1], u64(u) << 33);
  i64 start = indptr[u] = moved(u, key);
  if (u == n) return;
  i64 next = lower_bound(keys, key, bounds[1], u64(u + 1) << 33);
  present[u] = moved(u + 1, next) > start || alone[u] || alone[n + u];
}

// A block for each TILE of the m old entries. Those that are not deleted are copied to their new
// places.
extern "C" __global__ void move_entries(const i64* places, const u64* sums, i64 count,
                                        const u32* old, i64 m, u32* indices) {
  __shared__ i64 bounds[2];
  i64 first = blockIdx.x * TILE, last = min(first + TILE, m);
  if (threadIdx.x == 0) bounds[0] = lower_bound(places, 0, count, first);
  if (threadIdx.x == 32) bounds[1] = lower_bound(places, 0, count, last);
  __syncthreads();
  if (bounds[0] == bounds[1]) {  // nothing changes among them: all move by one distance
    i64 by = shift(sums[bounds[0]]);
    for (i64 i = first + threadIdx.x; i < last; i += blockDim.x) indices[i + by] = old[i];
    return;
  }
  for (i64 i = first + threadIdx.x; i < last; i += blockDim.x) {
    i64 j = lower_bound(places, bounds[0], bounds[1], i + 1);  // changes up to place i
    u64 sum = sums[j];
    bool is_deleted = j > 0 && places[j - 1] == i && sum - sums[j - 1] == DELETED;
    if (!is_deleted) indices[i + shift(sum)] = old[i];
  }
}
