// The rise of core numbers after a batch (algorithms/tracker/core.py), in waves, and the order.
//
// Numbers do not change before the end of a round. Layers do not change while threads compare them,
// except by evictions: an evicted vertex moves from ALIVE to the layer of the next wave, and both
// are above the layer of this wave. A vertex is reached by exactly one addition, and evicted by
// exactly one
// subtraction: the one that takes its `after` across its number.
#pragma once
#include "algorithms/tracker/waves.cuh"

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

// Calls visit(has, x, number, layer) for the entries of a piece; the layer is valid only if the
// number is k. Loads are in flight together.
template <typename Visit>
__device__ __forceinline__ void for_entries(const Graph& g, const u32 (&x)[TOGETHER],
                                            const bool (&has)[TOGETHER], i32 k, Visit visit) {
  i32 number[TOGETHER], layer[TOGETHER];
#pragma unroll
  for (u32 j = 0; j < TOGETHER; ++j) number[j] = has[j] ? g.number(x[j]) : -1;
#pragma unroll
  for (u32 j = 0; j < TOGETHER; ++j) layer[j] = number[j] == k ? g.layer_of(x[j]) : 0;
#pragma unroll
  for (u32 j = 0; j < TOGETHER; ++j) visit(has[j], x[j], number[j], layer[j]);
}

// Adds the counts of all lanes to *sum.
__device__ __forceinline__ void add_counts(i32* sum, u32 count) {
  count = lanes_sum(count);
  if (lane_id() == 0 && count) atomicAdd(sum, i32(count));
}

// Lets v pass all others of its number, and lists the neighbours that are reached by it.
struct Reach {
  Graph g;
  Waves w;
  __device__ __forceinline__ void piece(u32 v, const u32 (&x)[TOGETHER],
                                        const bool (&has)[TOGETHER]) const {
    i32 k = g.number(v), layer_of_v = g.layer_of(v);
    for_entries(g, x, has, k, [&](bool, u32 y, i32 number, i32 layer) {
      bool passed = number == k && is_later(layer, y, layer_of_v, v);
      append(g, w, NEXT, passed && atomicAdd(g.after + y, 1) == k, y);
    });
  }
};

// Adds to after[v], which is zero before, for v ALIVE: its neighbours of a larger number, or ALIVE
// as well.
struct Alive {
  Graph g;
  __device__ __forceinline__ void piece(u32 v, const u32 (&x)[TOGETHER],
                                        const bool (&has)[TOGETHER]) const {
    i32 k = g.number(v);
    u32 count = 0;
    for_entries(g, x, has, k, [&](bool, u32, i32 number, i32 layer) {
      count += number > k || (number == k && layer == ALIVE);
    });
    add_counts(g.after + v, count);
  }
};

// Evicts v, which is on the layer given, and lists the neighbours that are evicted by it.
struct Evict {
  Graph g;
  Waves w;
  i32 layer_of_v;
  __device__ __forceinline__ void piece(u32 v, const u32 (&x)[TOGETHER],
                                        const bool (&has)[TOGETHER]) const {
    i32 k = g.number(v);
    for_entries(g, x, has, k, [&](bool, u32 y, i32 number, i32 layer) {
      bool passed = number == k && is_later(layer, y, layer_of_v, v);
      bool evicted = passed && atomicSub(g.after + y, 1) == k + 1;
      if (evicted) g.layer[y] = layer_of_v + 1;
      append(g, w, ASIDE, evicted, y);
    });
  }
};

// Places v among the rising vertices, before those without a place yet, and adds its support to the
// neighbours that have v's new number already. That of neighbours that rise themselves does not
// matter.
struct Settle {
  Graph g;
  Waves w;
  i32 layer_of_v;  // ALIVE: v gets no place
  __device__ __forceinline__ void piece(u32 v, const u32 (&x)[TOGETHER],
                                        const bool (&has)[TOGETHER]) const {
    i32 k = g.number(v);
    for_entries(g, x, has, k, [&](bool, u32 y, i32 number, i32 layer) {
      if (number == k + 1) atomicAdd(g.support + y, 1);
      bool passed = number == k && layer >= SETTLED && is_later(layer, y, layer_of_v, v);
      bool settled = passed && layer_of_v != ALIVE && atomicSub(g.after + y, 1) == k + 2;
      if (settled) g.layer[y] = layer_of_v + 1;
      append(g, w, ASIDE, settled, y);
    });
  }
};

// Counts what is after the ALIVE vertices of a part, and evicts those with too few, wave by wave,
// each wave on a layer of its own.
__device__ void evict(const Graph& g, Waves& w, const Part& part, i32& back) {
  for_pieces(g, part, Alive{g});
  finish_wave(w);
  for_vertices(part, [&](bool has, u32 v) {
    bool evicted = has && g.after_of(v) <= g.number(v);
    if (evicted) g.layer[v] = back;
    append(g, w, ASIDE, evicted, v);
  });
  finish_wave(w);
  for (; w.last[ASIDE].count && w.budget >= 0; ++back) {
    for_pieces(g, w.last[ASIDE], Evict{g, w, back});
    finish_wave(w);
  }
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
  for (; w.last[ASIDE].count && depth < ALIVE - SETTLED - 1; ++depth) {
    for_pieces(g, w.last[ASIDE], Settle{g, w, SETTLED + depth});
    finish_wave(w);
  }
  for_vertices(rising, [&](bool has, u32 v) {
    append(g, w, NEXT, has && g.layer_of(v) == ALIVE, v);
  });
  finish_wave(w);
  for_pieces(g, w.list[NEXT], Settle{g, w, ALIVE});
  finish_wave(w);
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
// of the next round in NEXT.
__device__ void one_round(const Graph& g, Waves& w, u64* const (&room)[3], i32& back,
                          i32& front) {
  for (w.last[NEXT] = w.list[NEXT]; w.last[NEXT].count && w.budget >= 0;) {
    for_pieces(g, w.last[NEXT], Reach{g, w});
    finish_wave(w);
  }
  Part reached = w.list[NEXT];
  for_vertices(reached, [&](bool has, u32 v) {
    if (!has) return;
    g.layer[v] = ALIVE;
    g.after[v] = 0;
  });
  finish_wave(w);
  begin_list(w, ASIDE, room[2]);
  evict(g, w, reached, back);
  raise(g, w, room, reached, front);
}
