// Shrinking an ego network, a matrix of bits (ego.cuh), to its k-core or k-truss.
//
// Races: within a round, edges and degrees are only taken away. A thread that reads one before
// another thread takes it errs by leaving too much, and whatever has lost something is looked at
// again in the next round. A round that takes nothing away has seen the final state.
#pragma once
#include "algorithms/diversity/listing/ego.cuh"

constexpr i32 NONE = -1, GOING = -2;

// Peel the vertices of degree below k; their roots become NONE.
template <class Team>
__device__ void shrink_to_core(Team& team, const Ego& ego, i64 k) {
  for (;;) {
    bool any = false;
    for (i32 x = team.thread(); x < ego.d; x += team.threads()) {
      if (ego.root[x] == GOING)
        ego.root[x] = NONE;
      else if (ego.root[x] != NONE && ego.count[x] < k) {
        ego.root[x] = GOING;
        any = true;
      }
    }
    if (!team.any(any)) return;
    each_edge(team, ego, false, [&](i32 x) { return ego.root[x] == GOING; },
              [&](i32, i32 y) { atomicSub(&ego.count[y], 1); });
    team.sync();
  }
}

// Whether x and y have at least `enough` common neighbours.
__device__ __forceinline__ bool have_common(const Ego& ego, i32 x, i32 y, i64 enough) {
  const u32 *of_x = ego.bits_of(x), *of_y = ego.bits_of(y);
  i32 common = 0;
  for (i32 start = 0; start < ego.words; start += AT_ONCE) {
    u32 held[AT_ONCE];
#pragma unroll
    for (i32 j = 0; j < AT_ONCE; ++j) held[j] = start + j < ego.words ? of_x[start + j] : 0;
#pragma unroll
    for (i32 j = 0; j < AT_ONCE; ++j)
      if (held[j]) common += __popc(held[j] & of_y[start + j]);
    if (common >= enough) return true;
  }
  return false;
}

// Take out edges in fewer than `enough` triangles, 1 or more. An edge can be in too few only if an
// end's count is this round or a later one; in the first round that holds for all.
template <class Team>
__device__ void shrink_to_truss(Team& team, const Ego& ego, i64 enough) {
  volatile i32* round_of = ego.count;
  for (i32 round = 0;; ++round) {
    bool any = false;
    auto wanted = [&](i32 x) { return round_of[x] >= round; };
    auto visit = [&](i32 x, i32 y) {
      if (have_common(ego, x, y, enough)) return;
      part(ego, x, y);
      round_of[x] = round + 1;
      round_of[y] = round + 1;
      any = true;
    };
    bool is_long = Team::LONG_WARPS && ego.words >= 32;
    if constexpr (Team::LONG_WARPS)
      if (is_long) each_edge_in_turn(team, ego, round == 0, wanted, visit);
    if (!is_long) each_edge(team, ego, round == 0, wanted, visit);
    if (!team.any(any)) return;
  }
}

// Leave in the matrix what the model asks for, and join in the forest what it joins; NONE is the
// root of what the core model leaves out.
template <int MODEL, class Team>
__device__ void shrink_and_join(Team& team, const Ego& ego, i64 k) {
  if (MODEL == CORE) shrink_to_core(team, ego, k);
  if (MODEL == TRUSS && k > 2) shrink_to_truss(team, ego, k - 2);
  if (MODEL != COMPONENT) {
    each_edge(team, ego, true, [&](i32 x) { return MODEL == TRUSS || ego.root[x] != NONE; },
              [&](i32 x, i32 y) {
                if (MODEL == TRUSS || ego.root[y] != NONE) unite(x, y, ego.root);
              });
    team.sync();
  }
}
