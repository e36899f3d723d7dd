// Edge queries and degrees: one walk down the tree a thread.
//
// Idea: 10^5 walks are one wave of threads, so the time is the latency of about m + log2(SEGMENT)
// loads that wait for each other. The upper layers hit the L1 cache; copying them to shared memory
// first would read more than it saves. A degree is the difference of two walks that add up the
// counts to their left (order statistics), a thread each, so a hub's edges are not read.
//
// Within a mixed batch: beside.cu.
#include "lpma/backend/cuda/kernels/states.cuh"

// found[i], weights[i] and times[i] of edge (src[i], dst[i]); weight and time are 0 where it is not
// found.
extern "C" __global__ void __launch_bounds__(128)
    find_edges(const __grid_constant__ Store s, const u32* src, const u32* dst, i64 n, bool* found,
               Weight* weights, i64* times) {
  i64 i = thread_number();
  if (i < n) put_found(stored_of(s, edge_key(src[i], dst[i])), i, found, weights, times);
}

// counts[i]: the number of neighbours of vertices[i]. Two threads a query.
extern "C" __global__ void __launch_bounds__(128)
    count_neighbors(const __grid_constant__ Store s, const u32* vertices, i64 n, i64* counts) {
  i64 thread = thread_number();
  i64 i = thread >> 1;
  bool end = thread & 1;
  i64 before = 0;
  if (i < n) before = first_at_or_after(s, edge_key(vertices[i], end ? MARKER : 0)).before;
  i64 other = __shfl_xor_sync(0xffffffffu, before, 1);
  if (i < n && !end) counts[i] = other - before;
}
