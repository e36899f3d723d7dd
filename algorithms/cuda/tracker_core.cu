// Core numbers after a batch (algorithms/tracker/core.py): the fall and the rounds of rises in one
// cooperative kernel, and the order that they start from in another.
//
// fall   A wave first counts the support of its vertices, from numbers that stand still, then lets
//        fall those with too little, by one or to their degrees. They take their support from those
//        who counted on them, by one subtraction each, and who comes below its number by that is
//        in the next wave. So are those who fell, whose own support is counted anew; meanwhile
//        what others subtract from it does not matter. `after` is put right at the end, at once.
// rise   Numbers stand still until a round's end, and layers while anybody compares them but
//        for evictions: who is evicted goes from ALIVE to the next wave's layer, and both are
//        above this wave's. A vertex is reached by the one addition, and evicted by the one
//        subtraction, that takes what is after it across its number.
#include "tracker_waves.cuh"

constexpr i32 ALIVE = 0x7fffffff;          // the layer of who is reached and not evicted
constexpr i32 SETTLED = ALIVE - (1 << 20);  // and above it of those who rise, meanwhile

struct Graph : Rows {
  i32* numbers;
  i32* layer;
  i32* after;
  i32* support;
  const i32* old;  // numbers before the batch
  i32* sum;        // what the pieces of a row add up to: zero but while they do
  i32* target;     // the number that a vertex falls to, or its own
  u32* seen;       // the stamp under which a vertex was last listed

  __device__ __forceinline__ i32 number(u32 v) const { return __ldcg(numbers + v); }
  __device__ __forceinline__ i32 layer_of(u32 v) const { return __ldcg(layer + v); }
  __device__ __forceinline__ i32 after_of(u32 v) const { return __ldcg(after + v); }
};

// Whether w stands after u, of the same number.
__device__ __forceinline__ bool is_later(i32 layer_of_w, u32 w, i32 layer_of_u, u32 u) {
  return layer_of_w > layer_of_u || (layer_of_w == layer_of_u && w > u);
}

__device__ __forceinline__ void append_once(const Graph& g, const Waves& w, u32 stamp, bool has,
                                            u32 v) {
  append(g, w, NEXT, has && atomicExch(g.seen + v, stamp) != stamp, v);
}

// Call visit(has, x, number, layer) for the entries of a piece, the layer only where the number is
// k; loads go together.
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

// Add each lane's count to *sum.
__device__ __forceinline__ void add_counts(i32* sum, u32 count) {
  count = __reduce_add_sync(ALL_LANES, count);
  if (lane_id() == 0 && count) atomicAdd(sum, i32(count));
}

// The changed edges' own effect, by the order before.
__device__ __forceinline__ void count_changes(const Graph& g, const u64* edges, i64 count,
                                              i32 step) {
  for_numbers(count, [&](bool has, i64 i) {
    u32 u = has ? u32(edges[i] >> 32) : g.n, v = has ? u32(edges[i]) : 0;
    if (u >= g.n) return;  // u has gone
    i32 k = g.number(u), number = g.number(v);
    if (number >= k) atomicAdd(g.support + u, step);
    if (number > k || (number == k && is_later(g.layer_of(v), v, g.layer_of(u), u)))
      atomicAdd(g.after + u, step);
  });
}

// sum[v], from zero: the neighbours of v's number or more.
struct Supports {
  Graph g;
  __device__ __forceinline__ void piece(u32 v, const u32 (&x)[TOGETHER],
                                        const bool (&has)[TOGETHER]) const {
    i32 k = g.number(v);
    u32 count = 0;
    for_entries(g, x, has, -2, [&](bool, u32, i32 number, i32) { count += number >= k; });
    add_counts(g.sum + v, count);
  }
};

// Who counted on v, which falls to its target.
struct Fall {
  Graph g;
  Waves w;
  u32 stamp;  // of the next wave
  __device__ __forceinline__ void piece(u32 v, const u32 (&x)[TOGETHER],
                                        const bool (&has)[TOGETHER]) const {
    i32 from = g.number(v), to = __ldcg(g.target + v);
    if (to == from) return;
    for_entries(g, x, has, -2, [&](bool, u32 y, i32 number, i32) {
      bool loses = to < number && number <= from && atomicSub(g.support + y, 1) == number;
      append_once(g, w, stamp, loses, y);
    });
  }
};

// Whom v, which fell, no longer stands after. Of those who fell too it does not matter.
struct Leave {
  Graph g;
  __device__ __forceinline__ void piece(u32 v, const u32 (&x)[TOGETHER],
                                        const bool (&has)[TOGETHER]) const {
    i32 from = g.old[v], to = g.number(v), layer_of_v = g.layer_of(v);
    for_entries(g, x, has, from, [&](bool, u32 y, i32 number, i32 layer) {
      if (number > to &&
          (number < from || (number == from && is_later(layer_of_v, v, layer, y))))
        atomicSub(g.after + y, 1);
    });
  }
};

// after[v], from zero: who is after v.
struct Afters {
  Graph g;
  __device__ __forceinline__ void piece(u32 v, const u32 (&x)[TOGETHER],
                                        const bool (&has)[TOGETHER]) const {
    i32 k = g.number(v), layer_of_v = g.layer_of(v);
    u32 count = 0;
    for_entries(g, x, has, k, [&](bool, u32 y, i32 number, i32 layer) {
      count += number > k || (number == k && is_later(layer, y, layer_of_v, v));
    });
    add_counts(g.after + v, count);
  }
};

// Let v stand after all others of its number.
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

// after[v], from zero, for v ALIVE: who stands above, or is ALIVE as well.
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

// Put v on the layer, before those who are left.
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

// Give v its place among those who rise, before those who have none yet, and its support to who has
// v's new number already: of those who rise themselves it does not matter.
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

// Count who is after those ALIVE in the part; evict who has too few, a layer a wave.
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

// One wave of the fall, of what the last one appended.
__device__ void fall_once(const Graph& g, Waves& w, u64* next, u32 stamp) {
  Part now = w.last[NEXT];
  for_pieces(g, now, Supports{g});
  finish_wave(w);
  begin_list(w, NEXT, next);
  for_vertices(now, [&](bool has, u32 v) {
    i32 from = has ? g.number(v) : 0, enough = has ? __ldcg(g.sum + v) : 0;
    bool falls = enough < from;
    if (has) {
      g.support[v] = enough;  // right if v does not fall
      g.target[v] = falls ? i32(min(i64(from - 1), g.indptr[v + 1] - g.indptr[v])) : from;
      g.sum[v] = 0;
    }
    append_once(g, w, stamp, falls, v);
    append(g, w, ASIDE, falls && from == g.old[v], v);
  });
  finish_wave(w);
  for_pieces(g, now, Fall{g, w, stamp});
  finish_wave(w);
  for_vertices(now, [&](bool has, u32 v) {
    if (has) g.numbers[v] = __ldcg(g.target + v);
  });
  finish_wave(w);
  w.last[NEXT] = w.list[NEXT];
}

// The fall. Roots of the rise are then in NEXT, in room[0]; returns the stamp that they were listed
// under.
__device__ u32 fall(const Graph& g, Waves& w, u64* const (&room)[3], const u64* deleted,
                    i64 count, i32& back) {
  u32 stamp = 1, side = 0;
  for_numbers(count, [&](bool has, i64 i) {
    u32 v = has ? u32(deleted[i] >> 32) : 0;
    has = has && v < g.n && __ldcg(g.support + v) < g.number(v);
    append_once(g, w, stamp, has, v);
  });
  finish_wave(w);
  begin_list(w, ASIDE, room[2]);
  while (w.last[NEXT].count && w.budget >= 0) {
    side ^= 1;
    fall_once(g, w, room[side], ++stamp);
  }
  Part fallen = w.list[ASIDE];
  ++stamp;
  if (fallen.count) {
    for_pieces(g, fallen, Leave{g});
    finish_wave(w);
    for_vertices(fallen, [&](bool has, u32 v) {
      if (!has) return;
      g.layer[v] = back + i32(__ldcg(g.seen + v));
      g.after[v] = 0;
    });
    finish_wave(w);
    back += i32(stamp);
    for_pieces(g, fallen, Afters{g});
    finish_wave(w);
  }
  begin_list(w, NEXT, room[0]);
  for_vertices(fallen, [&](bool has, u32 v) {
    append_once(g, w, stamp, has && g.after_of(v) > g.number(v), v);
  });
  return stamp;
}

// Raise who is ALIVE of those reached, to before all others of the new number, in an order in which
// each has at most that number after it; who finds no place in it comes last, and is in NEXT then.
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

// A round: reach from the roots in NEXT, evict, and raise who is left. The next roots are then in
// NEXT.
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

// Bring all four from before to after. state: the back and the front layer, and whether the budget,
// in items, sufficed. sum, seen: zeros. lists: three of `room` items. found: three, the first zero.
extern "C" __global__ void __launch_bounds__(BLOCK)
    follow(const i64* indptr, const u32* indices, i64 n, const u64* deleted, i64 num_deleted,
           const u64* inserted, i64 num_inserted, const i32* old, i32* numbers, i32* layer,
           i32* after, i32* support, i32* sum, i32* target, u32* seen, u64* lists,
           i64 room_of_list, Found* found, i64 budget, i32* state) {
  u64* const room[3] = {lists, lists + room_of_list, lists + 2 * room_of_list};
  Graph g = {{indptr, indices, u32(n)}, numbers, layer, after, support, old, sum, target, seen};
  Waves w = {found, 0, budget, {}, {}};
  begin_list(w, NEXT, room[0]);
  begin_list(w, ASIDE, room[2]);
  i32 back = state[0], front = state[1];
  count_changes(g, deleted, num_deleted, -1);
  count_changes(g, inserted, num_inserted, 1);
  finish_wave(w);
  u32 stamp = fall(g, w, room, deleted, num_deleted, back);
  for_numbers(num_inserted, [&](bool has, i64 i) {
    u32 v = has ? u32(inserted[i] >> 32) : 0;
    append_once(g, w, stamp, has && g.after_of(v) > g.number(v), v);
  });
  finish_wave(w);
  while (w.list[NEXT].count && w.budget >= 0) one_round(g, w, room, back, front);
  if (thread_number() == 0) {
    state[0] = back;
    state[1] = front;
    state[2] = w.budget >= 0;
  }
}

// The order that belongs to core numbers. state[0]: the first layer not used.
extern "C" __global__ void __launch_bounds__(BLOCK)
    make_order(const i64* indptr, const u32* indices, i64 n, i32* numbers, i32* layer, i32* after,
               i32* support, u64* lists, i64 room_of_list, Found* found, i32* state) {
  Graph g = {{indptr, indices, u32(n)}, numbers, layer, after, support, nullptr, support, nullptr, nullptr};
  Waves w = {found, 0, i64(1) << 62, {}, {}};
  begin_list(w, NEXT, lists);
  begin_list(w, ASIDE, lists + room_of_list);
  for_numbers(n, [&](bool has, i64 v) {
    if (has) {
      g.layer[v] = ALIVE;
      g.after[v] = g.support[v] = 0;
    }
    append(g, w, NEXT, has, u32(v));
  });
  finish_wave(w);
  Part all = w.list[NEXT];
  for_pieces(g, all, Supports{g});
  i32 back = 0;
  evict(g, w, all, back);
  if (thread_number() == 0) state[0] = back;
}
