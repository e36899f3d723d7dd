// The ranked view: vertices numbered by falling degree, and each edge in the row of the larger
// rank. See algorithms/triangles/ranked.py. algorithms/triangles/cuda.py sorts the keys between
// these kernels.
#include "lpma/cuda/rows.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK = 256;  // as in lpma/cuda/launch.py
constexpr u64 LARGEST = 0xffffffffull;

__device__ __forceinline__ u64 joined(u64 high, u64 low) { return high << 32 | low; }
__device__ __forceinline__ u32 low_half(u64 key) { return u32(key); }
__device__ __forceinline__ u32 high_half(u64 key) { return u32(key >> 32); }

// Keys that sort the n vertices by falling degree, ties by id.
extern "C" __global__ void degree_keys(const i64* indptr, i64 n, u64* keys) {
  i64 u = thread_number();
  if (u < n) keys[u] = joined(LARGEST - u64(indptr[u + 1] - indptr[u]), u);
}

// From these keys, sorted: the vertex of each rank, the rank of each vertex, and degree[rank + 1].
extern "C" __global__ void number_vertices(const u64* keys, i64 n, u32* order, u32* rank_of,
                                           i64* degree) {
  i64 r = thread_number();
  if (r >= n) return;
  u32 u = low_half(keys[r]);
  order[r] = u;
  rank_of[u] = u32(r);
  degree[r + 1] = i64(LARGEST - high_half(keys[r]));
}

// The place of each thread's item among those kept, in no order; any number where it is not kept.
// Whole blocks call it.
__device__ __forceinline__ u64 place_of_kept(bool keep, u64* counter) {
  __shared__ u64 base;
  u32 kept = __ballot_sync(ALL_LANES, keep);
  u32 total, before = warps_before<BLOCK>(u32(__popc(kept)), total);
  if (threadIdx.x == 0) base = total ? atomicAdd(counter, u64(total)) : 0;
  __syncthreads();
  return base + before + lanes_before(kept);
}

// Of `count` entries of the simple view, those towards the smaller rank, as row << 32 | rank.
extern "C" __global__ void __launch_bounds__(BLOCK)
    edge_keys(const i64* indptr, const u32* indices, i64 n, i64 count,
                                     const u32* rank_of, u64* counter, u64* keys) {
  i64 u = row_of_entry(indptr, n, count);
  i64 i = thread_number();
  u32 row = 0, entry = 0;
  if (i < count) {
    row = rank_of[u];
    entry = rank_of[indices[i]];
  }
  bool keep = entry < row;
  u64 place = place_of_kept(keep, counter);
  if (keep) keys[place] = joined(row, entry);
}

// From these keys, sorted: the entries, and keys that sort slots by entry.
extern "C" __global__ void entries(const u64* keys, i64 m, u32* indices, u64* by_entry) {
  i64 slot = thread_number();
  if (slot >= m) return;
  indices[slot] = low_half(keys[slot]);
  by_entry[slot] = joined(low_half(keys[slot]), slot);
}

// From both kinds of keys, sorted: where each entry stands, and how many stand before it there.
extern "C" __global__ void rows_of_entries(const u64* keys, const u64* by_entry, i64 m,
                                           const i64* indptr, i32* in_slot, i32* in_length) {
  i64 i = thread_number();
  if (i >= m) return;
  u32 slot = low_half(by_entry[i]);
  in_slot[i] = i32(slot);
  in_length[i] = i32(slot - indptr[high_half(keys[slot])]);
}

// Each slot's edge by the ids of its vertices, as smaller << 32 | larger.
extern "C" __global__ void id_keys(const i64* indptr, const u32* indices, i64 n, i64 m,
                                   const u32* order, u64* keys) {
  i64 row = row_of_entry(indptr, n, m);
  i64 slot = thread_number();
  if (slot >= m) return;
  u32 u = order[row], v = order[indices[slot]];
  keys[slot] = joined(min(u, v), max(u, v));
}
