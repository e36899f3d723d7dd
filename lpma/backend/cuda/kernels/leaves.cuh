// The mover's first half: the touched leaves that a plan moves by themselves.
//
// Idea: every stored slot and every action computes its own place (work.cuh), so nothing is merged:
// slots are read, then written where they go, then the actions fill the gaps. A warp takes up to EACH
// leaves at a time and has the slots of ABREAST of them in flight, since the reads of one leaf alone
// would wait for each other. The best number of leaves depends on the number of warps.
//
// Bytes: a leaf with an insertion reads and writes about half of its filled slots.
//
// Requires: counts that say what will be after the batch (judge.cuh).
#pragma once
#include "lpma/backend/cuda/kernels/move.cuh"

constexpr int LEAVES_A_WARP = SEGMENT <= 32 ? 8 : SEGMENT <= 128 ? 256 / SEGMENT : 1;
// In a grid of few warps, which have many leaves each: fewer rounds, and more in each.
constexpr int LEAVES_AT_ONCE = SEGMENT <= 32 ? 16 : LEAVES_A_WARP;
constexpr int ABREAST = SEGMENT <= 32 ? 4 : 1;

// What a warp holds in shared memory of the leaves that it moves at a time.
template <int EACH>
struct Leaves {
  u32 begin[EACH + 1];  // their actions
  u32 marks[EACH][SEGMENT + 1];  // insertions before each slot, removals << 16
};

// The leaf, among the warp's, that action `a` belongs to.
template <int EACH>
__device__ __forceinline__ u32 leaf_of(const Leaves<EACH>& leaves, u32 n, u32 a) {
  u32 leaf = 0;
  for (u32 i = 1; i < n; ++i) leaf += leaves.begin[i] <= a;
  return leaf;
}

template <int EACH>
__device__ void mark_actions(const Work& w, Leaves<EACH>& leaves, u32 n, u32 own) {
  u32* marks = &leaves.marks[0][0];
  for (u32 i = lane_id(); i < n * (SEGMENT + 1); i += 32) marks[i] = 0;
  __syncwarp();
  for (u32 a = leaves.begin[0] + lane_id(); a < leaves.begin[n]; a += 32) {
    u32 row = w.row[a], leaf = leaf_of(leaves, n, a);
    u8 action = w.action[row];
    if (action == WRITE || !(own >> leaf & 1)) continue;
    atomicAdd(&leaves.marks[leaf][w.position[row]], action == INSERT ? 1u : 1u << 16);
  }
  __syncwarp();
}

// Make room in the leaves: the slots of ABREAST leaves are read, then written where they go.
template <int EACH>
__device__ void shift_slots(const Moving& moving, const Leaves<EACH>& leaves, u32 n, u32 rank,
                            u32 held) {
  for (u32 first = 0; first < n; first += ABREAST) {
    Content slot[ABREAST][SLOTS_A_LANE];
    int to[ABREAST][SLOTS_A_LANE];
    Slot at[ABREAST];
#pragma unroll
    for (int i = 0; i < ABREAST; ++i) {
      u32 leaf = min(first + i, n - 1);
      u32 filled = __shfl_sync(ALL_LANES, held, leaf);
      at[i] = segment_at(moving.s, __shfl_sync(ALL_LANES, rank, leaf));
      find_targets(leaves.marks[leaf], first + i < n ? filled : 0, false, to[i]);
#pragma unroll
      for (int j = 0; j < SLOTS_A_LANE; ++j)
        if (to[i][j] >= 0) slot[i][j] = content_at(moving.s, at[i], lane_id() + 32 * j);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ABREAST; ++i)
#pragma unroll
      for (int j = 0; j < SLOTS_A_LANE; ++j)
        if (to[i][j] >= 0) set_content(moving.s, at[i], to[i][j], slot[i][j]);
  }
  __syncwarp();
}

// Of touched leaves first … first + n - 1, move those that move by themselves; by a warp.
template <int EACH>
__device__ void move_some_leaves(const Moving& moving, Leaves<EACH>& leaves, u32 first, u32 n) {
  const Work& w = moving.w;
  u32 lane = lane_id(), rank = 0, held = 0;
  bool own = false;
  if (lane <= n) leaves.begin[lane] = w.begin[first + lane];
  if (lane < n) {
    own = w.layer[first + lane] == 0;
    rank = w.touched[first + lane];
    held = own ? held_now(moving, rank, first + lane) : 0;
  }
  u32 owned = __ballot_sync(ALL_LANES, own);
  __syncwarp();
  if (!owned || leaves.begin[0] == leaves.begin[n]) return;
  mark_actions(w, leaves, n, owned);
  shift_slots(moving, leaves, n, rank, held);
  for (u32 a = leaves.begin[0] + lane; a < leaves.begin[n]; a += 32) {
    u32 row = w.row[a], leaf = leaf_of(leaves, n, a);
    if (!(owned >> leaf & 1)) continue;
    u32 position = action_position(w, a, leaves.begin[leaf]);
    Slot at = segment_at(moving.s, w.rank[row]);
    if (w.action[row] == INSERT)
      set_content(moving.s, at, position, content_of_row(moving, row));
    if (w.action[row] == WRITE)
      set_value(moving.s, at, position, w.weight[row], time_of_row(w, moving.b, row));
  }
}

template <int EACH>
__device__ void move_all_leaves(const Moving& moving, Leaves<EACH>* of_warp) {
  u32 touched = moving.w.report[TOUCHED];
  u32 warp = warp_number<THREADS>(), warps = warp_count<THREADS>();
  u32 each = min(u32(EACH), (touched + warps - 1) / warps);
  for (u32 t = warp * each; t < touched; t += warps * each) {
    move_some_leaves(moving, of_warp[warp_id()], t, min(each, touched - t));
    __syncwarp();
  }
}
