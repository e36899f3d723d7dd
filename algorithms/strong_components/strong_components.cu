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
// A step (lpma/cuda/steps.cuh) is a sweep over the live vertices, or a walk along the entries of the
// vertices that the step before enqueued. Rows are enqueued in pieces (lpma/cuda/work_queue.cuh); an
// item is way << 63 | piece << 32 | vertex. A step costs about as much as the work on 2^STEP_SHIFT
// items. When more than `budget` steps have been paid for, the kernel stops, and says so.
//
// Requires: a cooperative launch of `refine`.
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr i32 NONE = -1;
constexpr u32 OUT = 1, IN = 2, BOTH = OUT | IN;  // ways
constexpr u32 LOADS_IN_FLIGHT = 4;               // of a lane: entries that it reads together
constexpr u32 STEP_SHIFT = 14;

// What a step counts.
struct Record {
  u64 items;  // enqueued
  u64 kept;   // vertices that stay live
};

struct Graph {
  const i64* indptr;
  const u32* indices;
  const i64* reverse_indptr;
  const u32* reverse;
  i64 n, m;
  i32* label;
  u32* least;
  u32* region;
  u32* colour;
  i32* out;  // counters; while colours spread, out[w] tells the step in which w was enqueued
  i32* in;
  u64* queue;  // 2 * half() items

  __device__ i64 half() const { return n + m / USUAL_PIECE; }
  __device__ const i64* starts(bool is_in) const { return is_in ? reverse_indptr : indptr; }
};

// Enqueue the rows of the lanes' vertices, each in the ways of its mask; for one whole warp.
__device__ void enqueue(const Graph& g, u32 ways, u32 v, u64* tail, Record* record) {
  u32 outs = ways & OUT ? pieces_of(g.indptr[v + 1] - g.indptr[v]) : 0;
  u32 ins = ways & IN ? pieces_of(g.reverse_indptr[v + 1] - g.reverse_indptr[v]) : 0;
  enqueue_items(outs + ins, tail, &record->items, [&](u32 i) {
    return (i < outs ? u64(i) : u64(1) << 31 | (i - outs)) << 32 | v;
  });
}

// The live vertices of a list, one after another: visit(v) gives the ways in which v is enqueued.
// Those that are still live afterwards are listed in `kept`, if that is given.
template <class Visit>
__device__ void sweep(const Graph& g, const u32* live, u64 count, u32* kept, u64* tail,
                      Record* record, Visit visit) {
  for (u64 first = warp_number() * 32; first < count; first += warp_count() * 32) {
    u64 i = first + lane_id();
    u32 v = i < count ? __ldcg(live + i) : 0;
    u32 ways = i < count ? visit(v) : 0;
    if (__any_sync(ALL_LANES, ways)) enqueue(g, ways, v, tail, record);
    if (!kept) continue;
    bool stays = i < count && g.label[v] == NONE;
    append_of_lanes(stays, v, kept, &record->kept);
  }
}

// A piece of a vertex's row of one of the ways.
struct Way : Piece {
  u32 vertex;
  bool is_in;
};

// The entries w of the items queue[begin … end - 1]: visit(v, w, is_in) gives the ways in which w
// is enqueued in `tail`.
template <class Visit>
__device__ void walk(const Graph& g, const u64* queue, u64 begin, u64 end, u64* tail,
                     Record* record, Visit visit) {
  auto own_of = [&](u64 item) -> Way {
    bool is_in = item >> 63;
    u32 v = u32(item);
    return {piece_of(g.starts(is_in), v, item >> 32 & 0x7FFFFFFF), v, is_in};
  };
  auto visit_all = [&](const WarpBatch& batch, const Way& own) {
    u32 v[LOADS_IN_FLIGHT], w[LOADS_IN_FLIGHT], ins = 0;
    u32 all_ins = __ballot_sync(ALL_LANES, own.is_in);
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      Entry entry = batch.entry(j);
      v[j] = __shfl_sync(ALL_LANES, own.vertex, entry.owner);
      u32 is_in = all_ins >> entry.owner & 1;
      const u32* entries = is_in ? g.reverse : g.indices;
      w[j] = entry.is_one ? entries[entry.at] : v[j];
      ins |= is_in << j;
    }
#pragma unroll
    for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
      u32 ways = w[j] == v[j] ? 0 : visit(v[j], w[j], bool(ins >> j & 1));
      if (__any_sync(ALL_LANES, ways)) enqueue(g, ways, w[j], tail, record);
    }
  };
  for_each_entry<LOADS_IN_FLIGHT>(queue, begin, end, own_of, visit_all);
}

struct PaidSteps : Steps<Record> {
  u64 budget, spent;

  // After a step that worked on `work` items.
  __device__ Record end(u64 work) {
    Record counted = Steps::end();
    spent += 1 + (work >> STEP_SHIFT);
    return counted;
  }

  __device__ bool are_paid() const { return spent <= budget; }
};

__device__ __forceinline__ bool is_live(const Graph& g, u32 v) {
  return __ldcg(g.label + v) == NONE;
}

__device__ __forceinline__ bool take(const Graph& g, u32 v, u32 root) {
  return is_live(g, v) && atomicCAS(g.label + v, NONE, i32(root)) == NONE;
}

// Walk along the items in front, and then along what that enqueues behind them, to the end.
template <class Visit>
__device__ void walk_all(const Graph& g, PaidSteps& steps, u64 items, Visit visit) {
  for (u64 begin = 0, end = items; begin < end && steps.are_paid();) {
    walk(g, g.queue, begin, end, g.queue + end, steps.record(), visit);
    u64 more = steps.end(end - begin).items;
    begin = end;
    end += more;
  }
}

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
