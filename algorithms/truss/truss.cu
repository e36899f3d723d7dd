// Truss decomposition in one launch (peel.cuh): by the incidence of edges and triangles or, where
// that is too large, by intersecting rows.
#include "algorithms/truss/edge_rows.cuh"
#include "algorithms/truss/peel.cuh"

// The triangles of every edge, as pairs of the two other edges.
struct Listed {
  const i64* starts;
  const int2* pairs;

  __device__ bool shrink(const Peeling&, i64) { return false; }

  __device__ u32 pieces(u32 e) const {
    return u32((starts[e + 1] - starts[e] + PIECE - 1) / PIECE);
  }

  template <class Visit>
  __device__ void each(u32 e, u32 piece, Visit visit) const {
    constexpr u32 STEPS = PIECE / 32;
    i64 first = starts[e] + i64(piece) * PIECE, last = starts[e + 1];
    int2 held[STEPS];  // read together: visiting waits for the memory again and again
#pragma unroll
    for (u32 k = 0; k < STEPS; ++k) {
      i64 i = first + 32 * k + lane_id();
      held[k] = i < last ? pairs[i] : make_int2(-1, -1);
    }
#pragma unroll
    for (u32 k = 0; k < STEPS; ++k)
      if (first + 32 * k < last) visit(held[k].x, held[k].y);
  }
};

// Candidates are the entries of the shorter of the edge's two rows; they are looked up in the
// longer one.
struct Intersected {
  EdgeRows g;
  i64 held;  // edges in the rows

  // Drop the edges that are GONE from the rows, once half of those held are. A warp a row, in
  // place: what a lane writes lies before or among the entries that its warp has read.
  __device__ bool shrink(const Peeling& p, i64 living) {
    if (2 * living > held) return false;
    held = living;
    for (i64 u = warp_number(); u < g.n; u += warp_count()) {
      i64 place = g.first[u], last = g.last[u];
      for (i64 start = place; start < last; start += 32) {
        i64 i = start + lane_id();
        u32 v = i < last ? g.indices[i] : 0;
        i32 e = i < last ? g.edge[i] : 0;
        bool keep = i < last && p.fate[e] != GONE;
        u32 kept = __ballot_sync(ALL_LANES, keep);
        __syncwarp();
        if (keep) {
          i64 to = place + lanes_before(kept);
          g.indices[to] = v;
          g.edge[to] = e;
        }
        place += __popc(kept);
        __syncwarp();
      }
      if (lane_id() == 0) g.last[u] = place;
    }
    return true;
  }

  __device__ u32 pieces(u32 e) const {
    Ends ends = rows_of(g, e);
    return u32((ends.end_a - ends.a + PIECE - 1) / PIECE);
  }

  template <class Visit>
  __device__ void each(u32 e, u32 piece, Visit visit) const {
    Ends ends = rows_of(g, e);
    i64 start = ends.a + i64(piece) * PIECE, last = min(start + PIECE, ends.end_a);
    i64 j = ends.b;
    for (; start < last; start += 32) {
      i64 i = start + lane_id();
      i32 f = -1, other = -1;
      if (i < last) {
        u32 w = g.indices[i];
        j = lower_bound(g.indices, j, ends.end_b, w);
        if (j < ends.end_b && g.indices[j] == w) {
          f = g.edge[i];
          other = g.edge[j];
        }
      }
      __syncwarp();
      visit(f, other);
    }
  }
};

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

extern "C" __global__ void __launch_bounds__(256)
    peel_intersected(PEELING, const u32* src, const u32* dst, const i64* first, i64* last,
                     u32* indices, i32* edge, i64 n, i64 m) {
  Intersected triangles = {{src, dst, first, last, indices, edge, n}, m};
  peel(Peeling GIVEN, triangles, until);
}
