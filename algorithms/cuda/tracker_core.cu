// Core numbers after a batch (algorithms/tracker/core.py): the fall and the rounds of rises in one
// cooperative kernel.
//
// A wave handles the vertices of a list, each by a team: a warp for a short row, a block for a long
// one. What it finds is appended to the lists of later waves, and counted in one of three records,
// which take turns so that one barrier a wave is enough: while a wave writes to one, the next is
// cleared, which nobody has read since the barrier before. `seen` says in which wave of the fall, or
// in which round, a vertex was last listed, so that it is listed once.
//
// fall    A vertex that fell is looked at again in the next wave, and so are the neighbours whose
//         numbers it no longer supports. Who falls in the same wave may not have seen that, or not
//         have been seen falling; it is looked at again for its own fall. Everybody else's number
//         stands still during the wave.
// rise    While a round reaches and evicts, no number changes. `count` is written by the wave that
//         reaches a vertex and lowered by later ones only. A vertex is evicted by the one
//         subtraction that takes its count to its number.
#include "teams.cuh"

constexpr u32 BLOCK = 512;      // tracker_core.py
constexpr u32 LONG = 1024;      // entries of a row for a block
constexpr i64 WAVE = 1 << 13;   // entries that could be read in the time of an empty wave
enum { NEXT, EVICTED };         // what a wave appends to

// What a wave appended. tracker_core.py: FOUND.
struct Found {
  u32 shorts[2], hubs[2];
  u64 entries;
};

struct Graph {
  const i64* indptr;
  const u32* indices;
  u32 n;
  i32* numbers;
  i32* count;
  u32* seen;
};

// Up to n vertices, those with short rows from the front, the others from the back.
struct List {
  u32* items;
  u32 shorts, hubs;  // before this wave
};

// A part of a list: what one wave appended.
struct Part {
  const u32* items;
  u32 first_short, shorts, first_hub, hubs;

  __device__ __forceinline__ bool any() const { return shorts || hubs; }
};

// The same in all threads.
struct Waves {
  Found* found;  // three records
  u32 slot;      // the one that this wave counts in
  u32 stamp;     // for `seen`
  i64 budget;
  List list[2];  // NEXT and EVICTED
};

__device__ __forceinline__ u32 length_of(const Graph& g, u32 v) {
  return u32(g.indptr[v + 1] - g.indptr[v]);
}

// List each lane's vertex v, if it has one; for one whole warp.
__device__ __forceinline__ void append(const Graph& g, const Waves& w, u32 kind, bool has, u32 v) {
  if (!__any_sync(ALL_LANES, has)) return;
  const List& list = w.list[kind];
  Found* found = w.found + w.slot;
  u32 length = has ? length_of(g, v) : 0;
  u32 shorts = __ballot_sync(ALL_LANES, has && length <= LONG);
  u32 hubs = __ballot_sync(ALL_LANES, has && length > LONG);
  u32 below = (1u << lane_id()) - 1, entries = __reduce_add_sync(ALL_LANES, length);
  u32 short_place = 0, hub_place = 0;
  if (lane_id() == 0) {
    if (shorts) short_place = atomicAdd(&found->shorts[kind], u32(__popc(shorts)));
    if (hubs) hub_place = atomicAdd(&found->hubs[kind], u32(__popc(hubs)));
    atomicAdd(&found->entries, u64(entries));
  }
  short_place = __shfl_sync(ALL_LANES, short_place, 0) + list.shorts + __popc(shorts & below);
  hub_place = __shfl_sync(ALL_LANES, hub_place, 0) + list.hubs + __popc(hubs & below);
  if (has && length <= LONG) list.items[short_place] = v;
  if (has && length > LONG) list.items[g.n - 1 - hub_place] = v;
}

// The same once a stamp.
__device__ __forceinline__ void append_once(const Graph& g, const Waves& w, bool has, u32 v) {
  append(g, w, NEXT, has && atomicExch(g.seen + v, w.stamp) != w.stamp, v);
}

// Call visit(has, w) for every entry w of the row of v, by the whole warps of a team.
template <typename Team, typename Visit>
__device__ __forceinline__ void for_row(const Graph& g, u32 v, Visit visit) {
  const u32* row = g.indices + g.indptr[v];
  u32 length = length_of(g, v);
  for (u32 start = Team::rank() - lane_id(); start < length; start += Team::size()) {
    u32 i = start + lane_id();
    visit(i < length, i < length ? row[i] : 0);
  }
}

// Call a wave's body for every vertex of a part, with its team.
template <typename Body>
__device__ __forceinline__ void for_part(const Graph& g, const Part& part, const Body& body) {
  u32 warps = gridDim.x * (BLOCK / 32);
  for (u32 i = blockIdx.x * (BLOCK / 32) + (threadIdx.x >> 5); i < part.shorts; i += warps)
    body.template run<Warp>(__ldcg(part.items + part.first_short + i));
  for (u32 i = blockIdx.x; i < part.hubs; i += gridDim.x)
    body.template run<Block>(__ldcg(part.items + (g.n - 1 - (part.first_hub + i))));
}

// Wait for the end of a wave; the parts that it appended.
__device__ __forceinline__ void finish_wave(Waves& w, Part (&parts)[2]) {
  u32 next = w.slot == 2 ? 0 : w.slot + 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) w.found[next] = {};
  grid_sync();
  Found found = read_for_block(w.found + w.slot);
  for (u32 kind = 0; kind < 2; ++kind) {
    List& list = w.list[kind];
    parts[kind] = {list.items, list.shorts, found.shorts[kind], list.hubs, found.hubs[kind]};
    list.shorts += found.shorts[kind];
    list.hubs += found.hubs[kind];
  }
  w.slot = next;
  w.budget -= i64(found.entries) + WAVE;
}

__device__ __forceinline__ List empty_list(u32* items) { return {items, 0, 0}; }

// A thread a listed edge: its source is a root where its number is not the larger one. Those of
// deleted edges may have gone.
__device__ __forceinline__ void append_roots(const Graph& g, const Waves& w, const u64* edges,
                                             i64 count) {
  i64 threads = i64(gridDim.x) * blockDim.x;
  for (i64 start = thread_number() - lane_id(); start < count; start += threads) {
    i64 i = start + lane_id();
    u64 edge = i < count ? edges[i] : 0;
    u32 u = u32(edge >> 32), v = u32(edge);
    bool is_root = i < count && u < g.n && __ldcg(g.numbers + u) <= __ldcg(g.numbers + v);
    append_once(g, w, is_root, is_root ? u : 0);
  }
}

// Let v fall to what its neighbours support.
struct Fall {
  Graph g;
  Waves w;

  template <typename Team>
  __device__ __forceinline__ void run(u32 v) const {
    const u32* row = g.indices + g.indptr[v];
    u32 length = length_of(g, v);
    i32 old = __ldcg(g.numbers + v);
    if (at_least<Team>(row, length, g.numbers, old) >= old) return;
    i32 low = 0, high = min(old - 1, i32(length));
    while (low < high) {
      i32 middle = (low + high + 1) >> 1;
      if (at_least<Team>(row, length, g.numbers, middle) >= middle)
        low = middle;
      else
        high = middle - 1;
    }
    if (Team::rank() == 0) g.numbers[v] = low;
    if (Team::rank() < 32) append_once(g, w, lane_id() == 0, v);
    for_row<Team>(g, v, [&](bool has, u32 x) {
      i32 number = has ? __ldcg(g.numbers + x) : 0;
      has = has && low < number && number <= old;
      append_once(g, w, has, has ? x : 0);
    });
  }
};

// Count the neighbours that would let v rise; if they are enough, go on from v, else evict it.
struct Reach {
  Graph g;
  Waves w;

  template <typename Team>
  __device__ __forceinline__ void run(u32 v) const {
    i32 k = __ldcg(g.numbers + v);
    i32 enough = at_least<Team>(g.indices + g.indptr[v], length_of(g, v), g.numbers, k);
    if (Team::rank() == 0) g.count[v] = enough;
    if (enough <= k) {
      if (Team::rank() < 32) append(g, w, EVICTED, lane_id() == 0, v);
      return;
    }
    for_row<Team>(g, v, [&](bool has, u32 x) {
      has = has && __ldcg(g.numbers + x) == k;
      append_once(g, w, has, has ? x : 0);
    });
  }
};

// Take v from the counts of its level.
struct Evict {
  Graph g;
  Waves w;

  template <typename Team>
  __device__ __forceinline__ void run(u32 v) const {
    i32 k = __ldcg(g.numbers + v);
    for_row<Team>(g, v, [&](bool has, u32 x) {
      has = has && __ldcg(g.numbers + x) == k && __ldcg(g.seen + x) == w.stamp;
      append(g, w, EVICTED, has && atomicSub(g.count + x, 1) == k + 1, has ? x : 0);
    });
  }
};

// A thread a vertex: those reached and not evicted rise, and are roots of the next round.
__device__ __forceinline__ void raise(const Graph& g, const Waves& w, const u32* reached,
                                      u32 shorts, u32 hubs) {
  u32 threads = gridDim.x * BLOCK, total = shorts + hubs;
  for (u32 start = blockIdx.x * BLOCK + threadIdx.x - lane_id(); start < total;
       start += threads) {
    u32 i = start + lane_id();
    u32 v = i < total ? __ldcg(reached + (i < shorts ? i : g.n - 1 - (i - shorts))) : 0;
    i32 k = i < total ? __ldcg(g.numbers + v) : 0;
    bool rises = i < total && __ldcg(g.count + v) > k;
    if (rises) g.numbers[v] = k + 1;
    append_once(g, w, rises, v);
  }
}

// False where the budget did not suffice. Lists alternate between room[0] and room[1].
__device__ bool fall(const Graph& g, Waves& w, u32* const (&room)[3], const u64* deleted,
                     i64 count) {
  Part parts[2];
  u32 side = 0;
  append_roots(g, w, deleted, count);
  finish_wave(w, parts);
  while (parts[NEXT].any()) {
    if (w.budget < 0) return false;
    side ^= 1;
    ++w.stamp;
    w.list[NEXT] = empty_list(room[side]);
    for_part(g, parts[NEXT], Fall{g, w});
    finish_wave(w, parts);
  }
  return true;
}

__device__ bool rise(const Graph& g, Waves& w, u32* const (&room)[3], const u64* inserted,
                     i64 count) {
  Part parts[2];
  u32 side = 0;
  ++w.stamp;
  w.list[NEXT] = empty_list(room[side]);
  append_roots(g, w, inserted, count);
  finish_wave(w, parts);
  while (parts[NEXT].any()) {
    w.list[EVICTED] = empty_list(room[2]);
    while (parts[NEXT].any()) {
      if (w.budget < 0) return false;
      for_part(g, parts[NEXT], Reach{g, w});
      finish_wave(w, parts);
    }
    List reached = w.list[NEXT];
    parts[EVICTED] = {room[2], 0, w.list[EVICTED].shorts, 0, w.list[EVICTED].hubs};
    while (parts[EVICTED].any()) {
      if (w.budget < 0) return false;
      for_part(g, parts[EVICTED], Evict{g, w});
      finish_wave(w, parts);
    }
    side ^= 1;
    ++w.stamp;
    w.list[NEXT] = empty_list(room[side]);
    raise(g, w, reached.items, reached.shorts, reached.hubs);
    finish_wave(w, parts);
  }
  return true;
}

// numbers: i32, those before, of all vertices before and after. seen: zeros. lists: 3 n vertices.
// found: three, the first one zero. *outcome = 1 where the budget did not suffice.
extern "C" __global__ void __launch_bounds__(BLOCK)
    follow(const i64* indptr, const u32* indices, i64 n, const u64* deleted, i64 num_deleted,
           const u64* inserted, i64 num_inserted, i32* numbers, i32* count, u32* seen, u32* lists,
           Found* found, i64 budget, u32* outcome) {
  Graph g = {indptr, indices, u32(n), numbers, count, seen};
  u32* const room[3] = {lists, lists + n, lists + 2 * n};
  Waves w = {found, 0, 1, budget, {empty_list(room[0]), empty_list(room[2])}};
  bool done = fall(g, w, room, deleted, num_deleted) && rise(g, w, room, inserted, num_inserted);
  if (!done && thread_number() == 0) *outcome = 1;
}
