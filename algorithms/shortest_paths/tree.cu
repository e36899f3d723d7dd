// Shortest paths on a CUDA device: the vertex before each on a path, in one cooperative launch.
//
// Idea: a breadth-first search along the edges that shortest paths take, those by which a distance
// is the sum it is. Edges of no weight might lead in circles, but levels rise.
//
// Encoding: reached[v] is level << 32 | the smallest vertex before v, of those a level lower; NONE
// until v is reached. One atomicMin keeps both: who finds NONE enqueues v, and a later level never
// replaces an earlier one. The source is on level 0, and before it is no vertex, ~0.
//
// A step (lpma/cuda/steps.cuh) is a level; it counts the items that it enqueues. A vertex is
// enqueued once, so levels are stretches of one queue.
//
// Instances: tree<float>, tree<double>
#include "algorithms/shortest_paths/frontier.cuh"

// REQUIRES: reached[n], counts[3], queue[n + m / USUAL_PIECE].
template <typename Weight>
__global__ void __launch_bounds__(THREADS, 5)
    tree(const i64* indptr, const u32* indices, const Weight* weights, i64 n, i64 source,
         u64* distance, u64* reached, u64* queue, u64* counts, i32* before) {
  Graph<Weight> g = {indptr, indices, weights, distance};
  u64 items = enqueue_alone(indptr, source, queue);
  for (i64 v = thread_number(); v < n; v += thread_count())
    reached[v] = v == source ? u32(NONE) : NONE;
  Steps<u64> steps = {counts};
  steps.clear();
  grid_sync();

  for (u64 level = 1; items; ++level) {
    u64* tail = queue + items;
    Gathered found = Gathered::empty<1>(0);
    u64* count = steps.record();
    auto pass = [&](bool is_one, u32 v) { enqueue_rows(indptr, is_one, v, tail, count); };
    relaxations(g, queue, items, [&](const Relaxation& r) {
      bool is_taken = r.is_one && r.length == r.known && r.length != INFINITE;
      bool is_new = is_taken && atomicMin(reached + r.v, level << 32 | r.u) == NONE;
      found.add(is_new, r.v, pass);
    });
    found.finish(pass);
    queue = tail;
    items = steps.end();
  }
  for (i64 v = thread_number(); v < n; v += thread_count()) before[v] = i32(__ldcg(reached + v));
}
