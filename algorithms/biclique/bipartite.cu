// Bipartite graphs: peeling one to its core.
#include "lpma/cuda/grid.cuh"

// Takes vertices of too few neighbours out, and counts them off their neighbours' degrees, until
// there are none. Vertices a … a + b - 1 are the right side's. Launched cooperatively.
//
// A vertex falls below what it needs once, whoever takes it there sees the value before, and queues
// it: every vertex is queued once, and the queue has room for all. A round is what the former one
// queued; between its two barriers nobody queues, so that all read the same tail.
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
        // The last of `needed` neighbours goes.
        if (atomicAdd(&degrees[w], ~0ull) == needed) queue[atomicAdd(tail, 1ull)] = w;
      }
    }
    head = end;
  }
}
