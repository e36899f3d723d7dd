// Truss decomposition in one launch (peel.cuh): by the incidence of edges and triangles or, where
// that is too large, by intersecting rows.
#include "algorithms/truss/intersect.cuh"
#include "algorithms/truss/listed.cuh"

#define PEELING                                                                            \
  i32 *support, u8 *fate, i32 *truss, u64 *queue, i32 *living, i32 *spare, Control *control, \
      i64 until
#define GIVEN \
  { support, fate, truss, queue, living, spare, control }

extern "C" __global__ void __launch_bounds__(256)
    peel_listed(PEELING, const i64* starts, const int2* pairs) {
  Listed triangles = {starts, pairs};
  peel(Peeling GIVEN, triangles, until);
}

#define ROWS \
  const u32 *src, const u32 *dst, const i64 *first, i64 *last, u32 *indices, i32 *edge, i64 n

extern "C" __global__ void __launch_bounds__(BLOCK)
    peel_intersected(PEELING, ROWS, i64 m, u32* filters, const u32* longs, i64 long_count) {
  // The first level's shrinking makes the filters.
  Intersected triangles = {{src, dst, first, last, indices, edge, n}, fate, filters, longs,
                           long_count, 2 * m};
  peel(Peeling GIVEN, triangles, until);
}

// How many items of the queue the edges are that have a triangle.
extern "C" __global__ void count_items(ROWS, i64 m, const i32* support, u64* total) {
  EdgeRows g = {src, dst, first, last, indices, edge, n};
  u64 items = 0;
  for (i64 e = thread_number(); e < m; e += thread_count())
    if (support[e]) {
      Ends ends = rows_of(g, u32(e));
      items += pieces_of<Intersected::PIECE>(ends.end_a - ends.a);
    }
  __syncwarp();
  items = warp_sum(items);
  if (lane_id() == 0 && items) atomicAdd(total, items);
}
