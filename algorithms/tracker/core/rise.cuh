// The rise of core numbers after a batch, in waves, and the order: the package has the method.
//
// Numbers do not change before the end of a round. Layers do not change while threads compare them,
// except by evictions: an evicted vertex moves from ALIVE to the layer of the next wave, and both
// are above the layer of this wave. A vertex is reached by exactly one addition, and evicted by
// exactly one
// subtraction: the one that takes its `after` across its number.
#pragma once
#include "algorithms/tracker/core/waves.cuh"

constexpr i32 ALIVE = 0x7fffffff;  // the layer of vertices that are reached and not evicted
// Layers from here to ALIVE: of rising vertices, temporarily.
constexpr i32 SETTLED = ALIVE - (1 << 20);

struct Graph : Rows {
  i32* numbers;
  i32* layer;
  i32* after;
  i32* support;
  const i32* old;  // numbers before the batch
  i32* sum;        // to which the pieces of a row add; zero at other times
  i32* target;     // the number that a vertex falls to, or its own
  u32* seen;       // the stamp under which a vertex was last listed
  u32* near;       // of each piece: its entries of the same number, and, from its end, of the next
  u32* nears;      // how many of both, by the piece: those of the next number << 16

  __device__ __forceinline__ i32 number(u32 v) const { return __ldcg(numbers + v); }
  __device__ __forceinline__ i32 layer_of(u32 v) const { return __ldcg(layer + v); }
  __device__ __forceinline__ i32 after_of(u32 v) const { return __ldcg(after + v); }
};

// Whether w comes after u, which has the same number.
__device__ __forceinline__ bool is_later(i32 layer_of_w, u32 w, i32 layer_of_u, u32 u) {
  return layer_of_w > layer_of_u || (layer_of_w == layer_of_u && w > u);
}

__device__ __forceinline__ void append_once(const Graph& g, const Waves& w, u32 stamp, bool has,
                                            u32 v) {
  append(g, w, NEXT, has && atomicExch(g.seen + v, stamp) != stamp, v);
}

// The numbers of the entries of a piece, −1 where there is none, and the layers of those whose
// number is k. Loads are in flight together.
__device__ __forceinline__ void read_entries(const Graph& g, const Entries& own, i32 k,
                                             i32 (&number)[LOADS_IN_FLIGHT],
                                             i32 (&layer)[LOADS_IN_FLIGHT]) {
#pragma unroll
  for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) number[j] = own.has[j] ? g.number(own.x[j]) : -1;
#pragma unroll
  for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) layer[j] = number[j] == k ? g.layer_of(own.x[j]) : 0;
}

// Calls visit(x, number, layer) for the entries of a piece, as `read_entries` has them.
template <typename Visit>
__device__ __forceinline__ void for_entries(const Graph& g, const Entries& own, i32 k,
                                            Visit visit) {
  i32 number[LOADS_IN_FLIGHT], layer[LOADS_IN_FLIGHT];
  read_entries(g, own, k, number, layer);
#pragma unroll
  for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) visit(own.x[j], number[j], layer[j]);
}

// Adds the counts of all lanes to *sum.
__device__ __forceinline__ void add_counts(i32* sum, u32 count) {
  count = lanes_sum(count);
  if (lane_id() == 0 && count) atomicAdd(sum, i32(count));
}

// Notes which entries of a piece have v's number k, and which k + 1, for `for_near`; returns the
// lane's share of those with k or more, and of those above k.
struct Split {
  u32 same_or_above, above;
};

__device__ __forceinline__ Split split(const Graph& g, const PieceOfRow& piece, i32 k,
                                       const Entries& own,
                                       const i32 (&number)[LOADS_IN_FLIGHT]) {
  u32 same = 0, next = 0, below = (1u << lane_id()) - 1;
  Split found = {0, 0};
#pragma unroll
  for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
    found.same_or_above += number[j] >= k;
    found.above += number[j] > k;
    u32 sames = __ballot_sync(ALL_LANES, number[j] == k);
    u32 nexts = __ballot_sync(ALL_LANES, number[j] == k + 1);
    if (number[j] == k) g.near[piece.first + same + __popc(sames & below)] = own.x[j];
    if (number[j] == k + 1) g.near[piece.last() - 1 - (next + __popc(nexts & below))] = own.x[j];
    same += __popc(sames);
    next += __popc(nexts);
  }
  if (lane_id() == 0) g.nears[piece.id] = next << 16 | same;
  return found;
}

// Calls same(v, k, has, y, layer) for the entries y of v's number k in every item of a part, and
// next(y) for those of the next, by whole warps. REQUIRES: the pieces were split since a number last
// changed.
template <typename Same, typename Next>
__device__ __forceinline__ void for_near(const Graph& g, const Part& part, Same same_one,
                                         Next next_one) {
  for_items(g, part, [&](const PieceOfRow& piece) {
    i32 k = g.number(piece.v);
    u32 counts = __ldcg(g.nears + piece.id), same = counts & 0xffff, next = counts >> 16;
    for (u32 i = lane_id(); i < (same + 31) / 32 * 32; i += 32) {
      bool has = i < same;
      u32 y = has ? __ldcg(g.near + piece.first + i) : 0;
      same_one(piece.v, k, has, y, has ? g.layer_of(y) : 0);
    }
    for (u32 i = lane_id(); i < next; i += 32)
      next_one(__ldcg(g.near + piece.last() - 1 - i));
  });
}

// Lets v pass all others of its number, and lists the neighbours that are reached by it. Adds to
// sum[v], which is zero before, the number of neighbours above.
__device__ __forceinline__ void reach(const Graph& g, const Waves& w, const PieceOfRow& piece,
                                      const Entries& own) {
  u32 v = piece.v;
  i32 k = g.number(v), layer_of_v = g.layer_of(v);
  i32 number[LOADS_IN_FLIGHT], layer[LOADS_IN_FLIGHT];
  read_entries(g, own, k, number, layer);
#pragma unroll
  for (u32 j = 0; j < LOADS_IN_FLIGHT; ++j) {
    u32 y = own.x[j];
    bool passed = number[j] == k && is_later(layer[j], y, layer_of_v, v);
    append(g, w, NEXT, passed && atomicAdd(g.after + y, 1) == k, y);
  }
  add_counts(g.sum + v, split(g, piece, k, own, number).above);
}

// Places the vertices of a part, on the layer given, among the rising ones, before those without a
// place yet; on ALIVE they get none. Adds their support to the neighbours that have their new number
// already. That of neighbours that rise themselves does not matter.
__device__ __forceinline__ void settle(const Graph& g, Waves& w, const Part& part,
                                       i32 layer_of_v) {
  auto same = [&](u32 v, i32 k, bool has, u32 y, i32 layer) {
    bool passed = has && layer >= SETTLED && is_later(layer, y, layer_of_v, v);
    bool settled = passed && layer_of_v != ALIVE && atomicSub(g.after + y, 1) == k + 2;
    if (settled) g.layer[y] = layer_of_v + 1;
    append(g, w, ASIDE, settled, y);
  };
  for_near(g, part, same, [&](u32 y) { atomicAdd(g.support + y, 1); });
  finish_wave(w);
}

// Counts what is after the ALIVE vertices of a part, of which `after` has what is above them, and
// evicts those with too few, wave by wave, each wave on a layer of its own.
__device__ void evict(const Graph& g, Waves& w, const Part& part, i32& back) {
  auto count_alive = [&](u32 v, i32, bool has, u32, i32 layer) {
    u32 alive = __popc(__ballot_sync(ALL_LANES, has && layer == ALIVE));
    if (lane_id() == 0 && alive) atomicAdd(g.after + v, i32(alive));
  };
  auto nothing = [](u32) {};
  for_near(g, part, count_alive, nothing);
  finish_wave(w);
  for_vertices(part, [&](bool has, u32 v) {
    bool evicted = has && g.after_of(v) <= g.number(v);
    if (evicted) g.layer[v] = back;
    append(g, w, ASIDE, evicted, v);
  });
  finish_wave(w);
  take_waves(w, ASIDE, back, ALIVE, [&](i32 layer_of_v) {
    auto pass = [&](u32 v, i32 k, bool has, u32 y, i32 layer) {
      bool passed = has && is_later(layer, y, layer_of_v, v);
      bool evicted = passed && atomicSub(g.after + y, 1) == k + 1;
      if (evicted) g.layer[y] = layer_of_v + 1;
      append(g, w, ASIDE, evicted, y);
    };
    for_near(g, w.last[ASIDE], pass, nothing);
    finish_wave(w);
  });
}

// Raises the reached vertices that are ALIVE, to before all others of their new number, in an order
// in which each has at most that number after it. A vertex without such a place comes last, and is
// left in NEXT.
__device__ void raise(const Graph& g, Waves& w, u64* const (&room)[3], const Part& reached,
                      i32& front) {
  begin_list(w, NEXT, room[1]);
  for_vertices(reached, [&](bool has, u32 v) {
    append(g, w, NEXT, has && g.layer_of(v) == ALIVE, v);
  });
  finish_wave(w);
  Part rising = w.list[NEXT];
  begin_list(w, NEXT, room[0]);
  if (rising.count == 0) return;
  begin_list(w, ASIDE, room[2]);
  for_vertices(rising, [&](bool has, u32 v) {
    i32 after = has ? g.after_of(v) : 0, number = has ? g.number(v) + 1 : 0;
    bool settled = has && after <= number;
    if (has) g.sum[v] = after;  // its support
    if (settled) g.layer[v] = SETTLED;
    append(g, w, ASIDE, settled, v);
  });
  finish_wave(w);
  i32 depth = 0;
  take_waves(w, ASIDE, depth, ALIVE - SETTLED - 1,
             [&](i32 now) { settle(g, w, w.last[ASIDE], SETTLED + now); });
  for_vertices(rising, [&](bool has, u32 v) {
    append(g, w, NEXT, has && g.layer_of(v) == ALIVE, v);
  });
  finish_wave(w);
  settle(g, w, w.list[NEXT], ALIVE);
  for_vertices(rising, [&](bool has, u32 v) {
    if (!has) return;
    i32 layer = g.layer_of(v);
    g.layer[v] = layer == ALIVE ? front : front - depth + (layer - SETTLED);
    g.numbers[v] = g.number(v) + 1;
    g.support[v] = __ldcg(g.sum + v);
    g.sum[v] = 0;
  });
  finish_wave(w);
  front -= depth + 1;
}

// A round: reaches vertices from the roots in NEXT, evicts, and raises those left. Leaves the roots
// of the next round in NEXT. Where the budget does not suffice to reach all, the pieces of the last
// ones are not split, and the round ends there.
__device__ void one_round(const Graph& g, Waves& w, u64* const (&room)[3], i32& back,
                          i32& front) {
  i32 waves = 0;
  w.last[NEXT] = w.list[NEXT];
  take_waves(w, NEXT, waves, ALIVE, [&](i32) {
    for_pieces(g, w.last[NEXT], [&](const PieceOfRow& piece, const Entries& own) {
      reach(g, w, piece, own);
    });
    finish_wave(w);
  });
  if (w.budget < 0) return;
  Part reached = w.list[NEXT];
  for_vertices(reached, [&](bool has, u32 v) {
    if (!has) return;
    g.layer[v] = ALIVE;
    g.after[v] = __ldcg(g.sum + v);
    g.sum[v] = 0;
  });
  finish_wave(w);
  begin_list(w, ASIDE, room[2]);
  evict(g, w, reached, back);
  raise(g, w, room, reached, front);
}
