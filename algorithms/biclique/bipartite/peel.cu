// Peeling a bipartite graph to its core (algorithms/biclique/bipartite/cuda.py).
#include "lpma/cuda/steps.cuh"

// Takes out vertices with too few neighbours, subtracting them from their neighbours' degrees,
// until none is left. Vertices a … a + b - 1 are the right side. Launched cooperatively.
//
// A degree falls below what its vertex needs exactly once. The thread whose subtraction does it
// queues the vertex, so every vertex is queued at most once, and the queue has room for all. A step
// handles the vertices that the step before queued, and counts those that it queues.
extern "C" __global__ void peel(const i64* left_indptr, const u32* left, i64 a,
                                const i64* right_indptr, const u32* right, i64 b, u64* degrees,
                                i64 of_left, i64 of_right, i64* queue, u64* counts) {
  i64 threads = thread_count();
  Steps<u64> steps = {counts};
  i64 end = 0;  // of what is queued
  auto enqueue = [&](i64 v) { queue[end + atomicAdd(steps.record(), 1ull)] = v; };
  for (i64 v = thread_number(); v < a + b; v += threads)
    if (i64(degrees[v]) < (v < a ? of_left : of_right)) enqueue(v);
  for (;;) {
    i64 head = end;
    end += steps.end();
    if (head == end) return;
    for (i64 i = head + warp_number(); i < end; i += threads / 32) {
      i64 v = queue[i];
      bool is_left = v < a;
      const i64* indptr = is_left ? left_indptr + v : right_indptr + (v - a);
      const u32* indices = is_left ? left : right;
      i64 shift = is_left ? a : 0;
      u64 needed = is_left ? of_right : of_left;
      for (i64 e = indptr[0] + lane_id(); e < indptr[1]; e += 32) {
        i64 w = i64(indices[e]) + shift;
        // w had just enough neighbours, and loses one.
        if (atomicAdd(&degrees[w], ~0ull) == needed) enqueue(w);
      }
    }
  }
}
