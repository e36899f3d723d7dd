// The truss decomposition of algorithms/truss/peel.cuh, keeping a record of every window and round
// (benchmarks/papers/truss_rounds.py).
#include "algorithms/truss/intersect.cuh"
#include "algorithms/truss/listed.cuh"

struct Record {
  u64 time_ns;
  i64 level;      // the support that is peeled
  u64 edges;      // living, or GOING in the round
  u64 triangles;  // that these have, those of two of them twice
  u64 items;      // of the round's queue; 0 for a window
};

struct Watch {
  Record* log;
  i64 room, next;

  __device__ void begin(i32 level, u64 edges, u64 items) {
    if (thread_number()) return;
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    Record& now = log[next];
    now.time_ns = time;
    now.level = level;
    now.items = items;
    if (edges) now.edges = edges;
  }
  __device__ void window(i64 living, i32 least) {
    if (next < room) begin(least, living, 0);
    ++next;
  }
  __device__ void round(const Peeling& p, i32 level, i64 first, i64 last) {
    if (next < room) {
      begin(level, 0, last - first);
      u64 edges = 0, triangles = 0;
      for (i64 i = first + thread_number(); i < last; i += thread_count()) {
        u64 item = p.queue[i];
        if (item >> 32) continue;
        ++edges;
        triangles += p.support[u32(item)];
      }
      __syncwarp();
      edges = warp_sum(edges);
      triangles = warp_sum(triangles);
      if (lane_id() == 0 && edges) {
        atomicAdd(&log[next].edges, edges);
        atomicAdd(&log[next].triangles, triangles);
      }
    }
    ++next;
  }
};

#define PEELING                                                                            \
  i32 *support, u8 *fate, i32 *truss, u64 *queue, i32 *living, i32 *spare, Control *control, \
      i64 until
#define GIVEN \
  { support, fate, truss, queue, living, spare, control }

extern "C" __global__ void __launch_bounds__(BLOCK)
    watch_listed(PEELING, const i64* starts, const int2* pairs, Record* log, i64 room) {
  Listed triangles = {starts, pairs};
  peel(Peeling GIVEN, triangles, until, Watch{log, room, 0});
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    watch_intersected(PEELING, const u32* src, const u32* dst, const i64* first, i64* last,
                      u32* indices, i32* edge, i64 n, i64 m, u32* filters, const u32* longs,
                      i64 long_count, Record* log, i64 room) {
  Intersected triangles = {{src, dst, first, last, indices, edge, n}, fate, filters, longs,
                           long_count, 2 * m};
  peel(Peeling GIVEN, triangles, until, Watch{log, room, 0});
}
