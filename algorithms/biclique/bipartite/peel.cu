// Peeling a bipartite graph to its core (algorithms/biclique/bipartite/cuda.py).
#include "lpma/cuda/grid.cuh"

// Takes out vertices with too few neighbours, subtracting them from their neighbours' degrees,
// until none is left. Vertices a … a + b - 1 are the right side. Launched cooperatively.
//
// A degree falls below what its vertex needs exactly once. The thread whose subtraction does it
// queues the vertex, so every vertex is queued at most once, and the queue has room for all. A
// round handles the vertices that the previous round queued. Between its two barriers no thread
// queues anything, so all threads read the same tail.
extern "C" __global__ void peel(const i64* left_indptr, const u32* left, i64 a,
                                const i64* right_indptr, const u32* right, i64 b, u64* degrees,
                                i64 of_left, i64 of_right, i64* queue, u64* tail) {
  i64 threads = thread_count();
  for (i64 v = thread_number(); v < a + b; v += threads)
    if (i64(degrees[v]) < (v < a ? of_left : of_right)) queue[atomicAdd(tail, 1ull)] = v;
  i64 head = 0;
  for (;;) {
    grid_sync();
    i64 end = i64(*static_cast<volatile u64*>(tail));
    grid_sync();
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
        if (atomicAdd(&degrees[w], ~0ull) == needed) queue[atomicAdd(tail, 1ull)] = w;
      }
    }
    head = end;
  }
}
