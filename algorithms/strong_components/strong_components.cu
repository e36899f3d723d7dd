// Strong components: what the search from the pivot leaves is trimmed and coloured, in one
// cooperative launch. algorithms/strong_components/__init__.py has the method and its sources.
//
// Encoding: label[v] is NONE while v is live, then a vertex of its component, which `least` leads
// to the smallest one of. An edge matters while both ends are live and in one region: no component
// has vertices in two. At first a region is which of the two searches reached a vertex; after a
// round, its colour. A colour is the scrambled id of the vertex that it comes from.
//
// Trimming keeps counters: how many live entries of its region a vertex has, each way. A vertex
// without any is trimmed, and takes one from its neighbours' counters, so that a round looks at
// each edge twice, however long the chains are.
//
// Requires: a cooperative launch of `refine`. traversal.cuh has the queue and the steps.
#include "algorithms/strong_components/traversal.cuh"

// Multiplying by an odd number numbers the vertices anew.
constexpr u32 MIX = 0x9E3779B1, UNMIX = 0x0E8B2F51;
static_assert(MIX * UNMIX == 1u, "UNMIX undoes MIX");

struct State {
  u64 pivot;  // product of degrees, as a float, << 32 | vertex
  u64 live;   // after the search from the pivot
  u32 least;  // vertex of the pivot's component
  u32 gave_up;  // after so many steps; 0: no
  Record records[3];
};

// The vertex with the greatest product of degrees: `pivot`. A product of 0 is none.
extern "C" __global__ void pick_pivot(const i64* indptr, const i64* reverse_indptr, i64 n,
                                      State* state) {
  u64 best = 0;
  for (i64 v = thread_number(); v < n; v += thread_count()) {
    float out = float(indptr[v + 1] - indptr[v]);
    float in = float(reverse_indptr[v + 1] - reverse_indptr[v]);
    best = max(best, u64(__float_as_uint(out * in)) << 32 | u64(v));
  }
  best = warp_max(best);
  if (lane_id() == 0 && best > __ldcg(&state->pivot)) atomicMax(&state->pivot, best);
}

// What the searches from the pivot say of each vertex: hops_to and hops_from, of levels below
// `levels`, unless the searches were cut short there. Whole warps.
extern "C" __global__ void split(const i64* indptr, const i64* reverse_indptr, i64 n, i64 pivot,
                                 i64 levels, const i32* hops_from, const i32* hops_to, i32* label,
                                 u32* least, u32* region, u32* live, State* state) {
  i64 v = thread_number();
  bool is_vertex = v < n, is_inside = false, is_live = false;
  if (is_vertex) {
    i32 from = hops_from[v], to = hops_to[v];
    if (max(from, to) >= levels) state->gave_up = u32(levels) + 1;
    is_inside = from >= 0 && to >= 0;
    is_live = !is_inside && indptr[v + 1] > indptr[v] && reverse_indptr[v + 1] > reverse_indptr[v];
    label[v] = is_inside ? i32(pivot) : is_live ? NONE : i32(v);
    least[v] = u32(v);
    region[v] = u32(from >= 0) | u32(to >= 0) << 1;
  }
  u32 inside = __ballot_sync(ALL_LANES, is_inside), first = u32(v) + __ffs(inside) - 1;
  if (lane_id() == 0 && inside && first < __ldcg(&state->least)) atomicMin(&state->least, first);
  append_of_lanes(is_live, u32(v), live, &state->live);
}

// A thread a vertex: the smallest one of its component. Nothing if the graph was given up: then
// some vertices are still live, and have no component.
extern "C" __global__ void name(i64 n, i64 pivot, const u32* least, const State* state,
                                i32* label) {
  i64 v = thread_number();
  if (v >= n || state->gave_up) return;
  i32 root = label[v];
  label[v] = i32(root == pivot ? state->least : least[root]);
}

// Trim the live vertices, all of which are enqueued both ways, and have counters of 0.
__device__ void trim(const Graph& g, PaidSteps& steps, const u32* live, u64 count, u64 items) {
  walk(g, g.queue, 0, items, g.queue, steps.record(), [&](u32 v, u32 w, bool is_in) {
    if (is_live(g, w) && g.region[w] == g.region[v]) atomicAdd((is_in ? g.in : g.out) + v, 1);
    return 0u;
  });
  steps.end(items);
  sweep(g, live, count, nullptr, g.queue, steps.record(), [&](u32 v) {
    bool is_alone = __ldcg(g.in + v) == 0 || __ldcg(g.out + v) == 0;
    if (is_alone) g.label[v] = i32(v);
    return is_alone ? BOTH : 0u;
  });
  items = steps.end(count).items;
  walk_all(g, steps, items, [&](u32 v, u32 w, bool is_in) {
    if (!is_live(g, w) || g.region[w] != g.region[v]) return 0u;
    i32* counter = (is_in ? g.out : g.in) + w;
    return atomicSub(counter, 1) == 1 && take(g, w, w) ? BOTH : 0u;
  });
}

// Spread the least colour along the edges until none changes. All live vertices are enqueued.
__device__ void spread(const Graph& g, PaidSteps& steps, u64 items) {
  for (u32 turn = 0; items && steps.are_paid(); turn ^= 1) {
    i32 stamp = -1 - i32(steps.spent);  // of this step alone
    walk(g, g.queue + turn * g.half(), 0, items, g.queue + (turn ^ 1) * g.half(), steps.record(),
         [&](u32 v, u32 w, bool) {
           if (!is_live(g, w) || g.region[w] != g.region[v]) return 0u;
           u32 colour = __ldcg(g.colour + v);
           if (__ldcg(g.colour + w) <= colour || atomicMin(g.colour + w, colour) <= colour)
             return 0u;
           return atomicExch(g.out + w, stamp) == stamp ? 0u : OUT;
         });
    items = steps.end(items).items;
  }
}

// Whoever a colour comes from is reached from all vertices of that colour that can go back to it.
__device__ void collect(const Graph& g, PaidSteps& steps, const u32* live, u64 count) {
  sweep(g, live, count, nullptr, g.queue, steps.record(), [&](u32 v) {
    bool is_root = __ldcg(g.colour + v) == v * MIX;
    if (is_root) g.label[v] = i32(v);
    return is_root ? IN : 0u;
  });
  u64 items = steps.end(count).items;
  walk_all(g, steps, items, [&](u32 v, u32 w, bool) {
    u32 colour = __ldcg(g.colour + w);
    if (colour != __ldcg(g.colour + v) || !take(g, w, colour * UNMIX)) return 0u;
    atomicMin(g.least + colour * UNMIX, w);
    return IN;
  });
}

// The components of all live vertices, which live[0] lists. `out` and `in` may hold anything.
extern "C" __global__ void refine(const i64* indptr, const u32* indices, const i64* reverse_indptr,
                                  const u32* reverse, i64 n, i64 m, i64 budget, i32* label,
                                  u32* least, u32* region, u32* colour, i32* out, i32* in,
                                  u32* live, u32* other, u64* queue, State* state) {
  Graph g = {indptr, indices, reverse_indptr, reverse, n,   m,  label,
             least,  region,  colour,         out,     in, queue};
  PaidSteps steps = {{state->records}, u64(budget), 0};
  Record now = {0, state->live};
  if (state->gave_up) return;
  for (u32 round = 0; now.kept && steps.are_paid(); ++round) {
    u64 before = now.kept;
    sweep(g, live, before, other, queue, steps.record(), [&](u32 v) {
      if (!is_live(g, v)) return 0u;
      if (round) region[v] = colour[v];
      out[v] = in[v] = 0;
      return BOTH;
    });
    now = steps.end(before);
    trim(g, steps, other, now.kept, now.items);
    before = now.kept;
    sweep(g, other, before, live, queue, steps.record(), [&](u32 v) {
      colour[v] = v * MIX;
      return is_live(g, v) ? OUT : 0u;
    });
    now = steps.end(before);
    spread(g, steps, now.items);
    if (steps.are_paid()) collect(g, steps, live, now.kept);
  }
  if (thread_number() == 0 && !steps.are_paid()) state->gave_up = u32(steps.spent);
}
