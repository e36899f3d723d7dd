// Core numbers after a batch (tracker/core/cuda.py): the fall and the rounds of rises in one
// cooperative kernel, and the order from which they start in another. The package has the method.
//
// A wave of the fall first counts the support of its vertices, while numbers do not change. Then it
// lets those with too little fall, by one or to their degrees. They withdraw their support from the
// neighbours that had it, by one subtraction each, and a neighbour whose support drops below its
// number by that is in the next wave. So are the vertices that fell: their own support is counted
// anew, so what others subtract from it meanwhile does not matter. `after` is corrected at the end,
// for all at once.
#include "algorithms/tracker/core/rise.cuh"

// Adds the effect of the changed edges to the counts of their ends, by the order before the batch.
__device__ __forceinline__ void count_changes(const Graph& g, const u64* edges, i64 count,
                                              i32 step) {
  for_numbers(count, [&](bool has, i64 i) {
    u32 u = has ? u32(edges[i] >> 32) : g.n, v = has ? u32(edges[i]) : 0;
    if (u >= g.n) return;  // u is no vertex any more
    i32 k = g.number(u), number = g.number(v);
    if (number >= k) atomicAdd(g.support + u, step);
    if (number > k || (number == k && is_later(g.layer_of(v), v, g.layer_of(u), u)))
      atomicAdd(g.after + u, step);
  });
}

// One wave of the fall, over what the last one appended.
__device__ void fall_once(const Graph& g, Waves& w, u64* next, u32 stamp) {
  Part now = w.last[NEXT];
  // The sum of a vertex becomes its support: how many neighbours have its number or more.
  for_pieces(g, now, [&](const PieceOfRow& piece, const Entries& own) {
    i32 k = g.number(piece.v);
    u32 count = 0;
    for_entries(g, own, -2, [&](u32, i32 number, i32) { count += number >= k; });
    add_counts(g.sum + piece.v, count);
  });
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
  // Those that fall withdraw their support from their neighbours.
  for_pieces(g, now, [&](const PieceOfRow& piece, const Entries& own) {
    i32 from = g.number(piece.v), to = __ldcg(g.target + piece.v);
    if (to == from) return;
    for_entries(g, own, -2, [&](u32 y, i32 number, i32) {
      bool loses = to < number && number <= from && atomicSub(g.support + y, 1) == number;
      append_once(g, w, stamp, loses, y);
    });
  });
  finish_wave(w);
  for_vertices(now, [&](bool has, u32 v) {
    if (has) g.numbers[v] = __ldcg(g.target + v);
  });
  finish_wave(w);
  w.last[NEXT] = w.list[NEXT];
}

// Brings `after` up to date when all have fallen.
__device__ void reorder(const Graph& g, Waves& w, const Part& fallen, i32 back) {
  // That of neighbours which a vertex no longer comes after; it does not matter if they fell, too.
  for_pieces(g, fallen, [&](const PieceOfRow& piece, const Entries& own) {
    u32 v = piece.v;
    i32 from = g.old[v], to = g.number(v), layer_of_v = g.layer_of(v);
    for_entries(g, own, from, [&](u32 y, i32 number, i32 layer) {
      if (number > to &&
          (number < from || (number == from && is_later(layer_of_v, v, layer, y))))
        atomicSub(g.after + y, 1);
    });
  });
  finish_wave(w);
  for_vertices(fallen, [&](bool has, u32 v) {
    if (!has) return;
    g.layer[v] = back + i32(__ldcg(g.seen + v));
    g.after[v] = 0;
  });
  finish_wave(w);
  // That of the fallen themselves.
  for_pieces(g, fallen, [&](const PieceOfRow& piece, const Entries& own) {
    u32 v = piece.v, count = 0;
    i32 k = g.number(v), layer_of_v = g.layer_of(v);
    for_entries(g, own, k, [&](u32 y, i32 number, i32 layer) {
      count += number > k || (number == k && is_later(layer, y, layer_of_v, v));
    });
    add_counts(g.after + v, count);
  });
  finish_wave(w);
}

// The fall. Leaves the roots of the rise in NEXT, in room[0], and returns the stamp under which
// they were listed.
__device__ u32 fall(const Graph& g, Waves& w, u64* const (&room)[3], const u64* deleted,
                    i64 count, i32& back) {
  i32 stamp = 1;
  for_numbers(count, [&](bool has, i64 i) {
    u32 v = has ? u32(deleted[i] >> 32) : 0;
    has = has && v < g.n && __ldcg(g.support + v) < g.number(v);
    append_once(g, w, stamp, has, v);
  });
  finish_wave(w);
  begin_list(w, ASIDE, room[2]);
  take_waves(w, NEXT, stamp, ALIVE,
             [&](i32 last) { fall_once(g, w, room[last & 1], u32(last + 1)); });
  Part fallen = w.list[ASIDE];
  ++stamp;
  if (fallen.count) {
    reorder(g, w, fallen, back);
    back += stamp;
  }
  begin_list(w, NEXT, room[0]);
  for_vertices(fallen, [&](bool has, u32 v) {
    append_once(g, w, stamp, has && g.after_of(v) > g.number(v), v);
  });
  return stamp;
}

// Brings numbers, layer, after and support from the state before to that after. back, front: the
// next layers to use; state: these afterwards, and whether the budget, in items, was enough.
// lists: three of room_of_list items. near: as long as indices. nears: as long
// as a list.
extern "C" __global__ void __launch_bounds__(BLOCK)
    follow(const i64* indptr, const u32* indices, i64 n, const u64* deleted, i64 num_deleted,
           const u64* inserted, i64 num_inserted, const i32* old, i32* numbers, i32* layer,
           i32* after, i32* support, i32* sum, i32* target, u32* seen, u64* lists,
           i64 room_of_list, Found* waves, u32* near, u32* nears, i64 budget,
           i64 first_back, i64 first_front, i32* state) {
  u64* const room[3] = {lists, lists + room_of_list, lists + 2 * room_of_list};
  Graph g = {{indptr, indices, u32(n)}, numbers, layer, after, support, old, sum, target, seen,
             near, nears};
  Waves w = {{}, {}, budget, {waves}};
  begin_list(w, NEXT, room[0]);
  begin_list(w, ASIDE, room[2]);
  i32 back = i32(first_back), front = i32(first_front);
  w.steps.clear();
  for_numbers(n, [&](bool has, i64 v) {
    if (has) sum[v] = seen[v] = 0;
  });
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

// Makes the order for given core numbers. state[0]: the first layer that is not used.
extern "C" __global__ void __launch_bounds__(BLOCK)
    make_order(const i64* indptr, const u32* indices, i64 n, i32* numbers, i32* layer, i32* after,
               i32* support, u64* lists, i64 room_of_list, Found* waves, u32* near, u32* nears,
               i32* state) {
  Graph g = {{indptr, indices, u32(n)}, numbers, layer, after, support, nullptr, nullptr, nullptr,
             nullptr, near, nears};
  Waves w = {{}, {}, i64(1) << 62, {waves}};
  begin_list(w, NEXT, lists);
  begin_list(w, ASIDE, lists + room_of_list);
  w.steps.clear();
  for_numbers(n, [&](bool has, i64 v) {
    if (has) {
      g.layer[v] = ALIVE;
      g.after[v] = g.support[v] = 0;
    }
  });
  finish_wave(w);
  for_numbers(n, [&](bool has, i64 v) { append(g, w, NEXT, has, u32(v)); });
  finish_wave(w);
  Part all = w.list[NEXT];
  for_pieces(g, all, [&](const PieceOfRow& piece, const Entries& own) {
    i32 k = g.number(piece.v), number[LOADS_IN_FLIGHT], layer[LOADS_IN_FLIGHT];
    read_entries(g, own, -2, number, layer);
    Split found = split(g, piece, k, own, number);
    add_counts(g.support + piece.v, found.same_or_above);
    add_counts(g.after + piece.v, found.above);
  });
  finish_wave(w);
  i32 back = 0;
  evict(g, w, all, back);
  if (thread_number() == 0) state[0] = back;
}
