// Edge queries and degrees: one walk down the tree a thread.
//
// Idea: 10^5 walks are one wave of threads, so the time is the latency of about m + log2(SEGMENT)
// loads that wait for each other. The upper layers hit the L1 cache; copying them to shared memory
// first would read more than it saves. A degree is the difference of two walks that add up the
// counts to their left (order statistics), a thread each, so a hub's edges are not read.
//
// Within a mixed batch: beside.cu.
// Ids that lie on the device have been looked at by nobody: where `ticket` is not 0, the host is told
// how many of them are MARKER, which is no vertex. `seen`: two words, 0 before and after.
#include "lpma/backend/cuda/kernels/neighbors.cuh"

// Tell the host how many threads of the grid met a bad id, once all have looked. For whole blocks.
__device__ __forceinline__ void tell_bad_ids(bool is_bad, u32* seen, i64* answer, i64 ticket) {
  if (!ticket) return;
  count_bad_ids(is_bad, seen);
  if (threadIdx.x) return;
  if (atomicAdd(seen + 1, 1u) + 1 < gridDim.x) return;
  seen[1] = 0;
  tell(answer, ticket, 0, 0, atomicExch(seen, 0u));
}

// found[i], weights[i] and times[i] of edge (src[i], dst[i]); weight and time are 0 where it is not
// found. dst: null for the vertices' own markers.
extern "C" __global__ void __launch_bounds__(128)
    find_edges(const __grid_constant__ Store s, const u32* src, const u32* dst, i64 n, bool* found,
               Weight* weights, i64* times, u32* seen, i64* answer, i64 ticket) {
  i64 i = thread_number();
  bool is_bad = false;
  if (i < n) {
    u32 u = src[i], v = dst ? dst[i] : MARKER;
    is_bad = u == MARKER || (dst && v == MARKER);
    put_found(stored_of(s, edge_key(u, v)), i, found, weights, times);
  }
  tell_bad_ids(is_bad, seen, answer, ticket);
}

// counts[i]: the number of neighbours of vertices[i]. Two threads a query.
extern "C" __global__ void __launch_bounds__(128)
    count_neighbors(const __grid_constant__ Store s, const u32* vertices, i64 n, i64* counts,
                    u32* seen, i64* answer, i64 ticket) {
  i64 thread = thread_number();
  i64 i = thread >> 1;
  bool end = thread & 1;
  i64 before = 0;
  u32 u = i < n ? vertices[i] : 0;
  if (i < n) before = first_at_or_after(s, edge_key(u, end ? MARKER : 0)).before;
  i64 other = __shfl_xor_sync(0xffffffffu, before, 1);
  if (i < n && !end) counts[i] = other - before;
  tell_bad_ids(!end && u == MARKER, seen, answer, ticket);
}
