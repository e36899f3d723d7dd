// The mover's first half: the touched leaves that a plan moves by themselves.
//
// Every stored slot and every action finds its place in closed form (work.cuh), so nothing is
// merged: slots are read, then written further on, then the actions fill the gaps. A warp takes
// LEAVES_A_WARP leaves at a time and has the slots of ABREAST of them in flight: one leaf alone
// would be half a dozen reads that wait for each other.
//
// Counts are right before it begins (plan.cu). Bytes: a leaf with an insertion reads and writes
// about half its filled slots.
#include "lpma/backend/cuda/move.cuh"

constexpr int LEAVES_A_WARP = SEGMENT <= 32 ? 8 : SEGMENT <= 128 ? 256 / SEGMENT : 1;
constexpr int ABREAST = SEGMENT <= 32 ? 4 : 1;

// What a warp keeps in shared memory of the leaves it moves at a time.
struct Leaves {
  u32 begin[LEAVES_A_WARP + 1];  // their actions
  u32 marks[LEAVES_A_WARP][SEGMENT + 1];  // insertions before each slot, removals << 16
};

// Which of the leaves action `a` belongs to.
__device__ __forceinline__ u32 leaf_of(const Leaves& leaves, u32 n, u32 a) {
  u32 leaf = 0;
  for (u32 i = 1; i < n; ++i) leaf += leaves.begin[i] <= a;
  return leaf;
}

__device__ void mark_actions(const Work& w, Leaves& leaves, u32 n, u32 own) {
  for (u32 i = lane_id(); i < n * (SEGMENT + 1); i += 32) leaves.marks[0][i] = 0;
  __syncwarp();
  for (u32 a = leaves.begin[0] + lane_id(); a < leaves.begin[n]; a += 32) {
    u32 row = w.row[a], leaf = leaf_of(leaves, n, a);
    u8 action = w.action[row];
    if (action == WRITE || !(own >> leaf & 1)) continue;
    atomicAdd(&leaves.marks[leaf][w.position[row]], action == INSERT ? 1u : 1u << 16);
  }
  __syncwarp();
}

// Make room in the leaves: slots are read, those of ABREAST leaves at a time, then written on.
__device__ void shift_slots(const Moving& v, const Leaves& leaves, u32 n, u32 rank, u32 held) {
  for (u32 first = 0; first < n; first += ABREAST) {
    Content slot[ABREAST][SLOTS_A_LANE];
    int to[ABREAST][SLOTS_A_LANE];
    Slot at[ABREAST];
#pragma unroll
    for (int i = 0; i < ABREAST; ++i) {
      u32 leaf = min(first + i, n - 1);
      u32 filled = __shfl_sync(ALL_LANES, held, leaf);
      at[i] = segment_at(v.s, __shfl_sync(ALL_LANES, rank, leaf));
      find_targets(leaves.marks[leaf], first + i < n ? filled : 0, false, to[i]);
#pragma unroll
      for (int j = 0; j < SLOTS_A_LANE; ++j)
        if (to[i][j] >= 0) slot[i][j] = content_at(v.s, at[i], lane_id() + 32 * j);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ABREAST; ++i)
#pragma unroll
      for (int j = 0; j < SLOTS_A_LANE; ++j)
        if (to[i][j] >= 0) set_content(v.s, at[i], to[i][j], slot[i][j]);
  }
  __syncwarp();
}

// Touched leaves first … first + n - 1 by a warp, those that move by themselves.
__device__ void move_some_leaves(const Moving& v, Leaves& leaves, u32 first, u32 n) {
  const Work& w = v.w;
  u32 lane = lane_id(), rank = 0, held = 0;
  bool own = false;
  if (lane <= n) leaves.begin[lane] = w.begin[first + lane];
  if (lane < n) {
    own = w.layer[first + lane] == 0;
    rank = w.touched[first + lane];
    held = own ? held_now(v, rank, first + lane) : 0;
  }
  u32 owned = __ballot_sync(ALL_LANES, own);
  __syncwarp();
  if (!owned || leaves.begin[0] == leaves.begin[n]) return;
  mark_actions(w, leaves, n, owned);
  shift_slots(v, leaves, n, rank, held);
  for (u32 a = leaves.begin[0] + lane; a < leaves.begin[n]; a += 32) {
    u32 row = w.row[a], leaf = leaf_of(leaves, n, a);
    if (!(owned >> leaf & 1)) continue;
    u32 position = action_position(w, a, leaves.begin[leaf]);
    Slot at = segment_at(v.s, w.rank[row]);
    if (w.action[row] == INSERT)
      set_content(v.s, at, position, content_of_row(w, v.b, v.keys, v.places, row, v.versions));
    if (w.action[row] == WRITE) set_value(v.s, at, position, w.weight[row], time_of_row(w, v.b, row));
  }
}

__device__ void move_all_leaves(const Moving& v, Leaves* of_warp) {
  u32 touched = v.w.report[TOUCHED];
  u32 warp = warp_number<THREADS>(), warps = warp_count<THREADS>();
  for (u32 t = warp * LEAVES_A_WARP; t < touched; t += warps * LEAVES_A_WARP) {
    move_some_leaves(v, of_warp[warp_id()], t, min(u32(LEAVES_A_WARP), touched - t));
    __syncwarp();
  }
}

// The touched leaves that a plan moves by themselves.
extern "C" __global__ void __launch_bounds__(THREADS, SEGMENT <= 32 ? 4 : 1)
    move_leaves(const __grid_constant__ Store s, const __grid_constant__ Batch b,
                const __grid_constant__ Work w, int versions, u64* changed, u8* inserted) {
  extern __shared__ char shared[];
  Moving v = {s, b, w, {}, row_keys(w), row_places(w), versions, 0};
  write_changes(w, v.keys, changed, inserted);
  move_all_leaves(v, (Leaves*)shared);
}
