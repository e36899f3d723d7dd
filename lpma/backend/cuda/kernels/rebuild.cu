// The whole store at once: rebuilt with a batch, spread from whole columns, or grown by a level.
//
// Idea: where a batch is large beside the store, every slot and every action goes straight to its
// place in fresh levels: one read and one write of each, and no staging. The old store stays as it
// is until the new one is published. A warp takes a *stretch* of segments with their actions. The
// place of a slot follows from the counts to its left, up the tree, and from the actions before it
// in its segment (work.cuh).
//
// Requires: for `rebuild`, counts that say what will be after the batch (plan.cu).
#include "lpma/backend/cuda/kernels/move.cuh"
#include "lpma/cuda/grid.cuh"

constexpr u32 MANY_ACTIONS = 1024;  // of a stretch; a leaf with more is left to the whole grid
constexpr int STRETCH = SEGMENT <= 32 ? 32 : SEGMENT <= 256 ? 1024 / SEGMENT : 2;
constexpr int ABREAST = SEGMENT <= 32 ? 4 : 1;  // segments whose slots are in flight together

// A warp's stretch of segments: how many slots come before each, and which touched leaf each is
// (-1: none).
struct Stretch {
  u64 base[STRETCH];
  int leaf[STRETCH];
  u32 marks[STRETCH][SEGMENT + 1];  // insertions before each slot; its removal << 16
};

__device__ __forceinline__ void put_action(const Store& to, const Batch& b, const Work& w,
                                           const u64* keys, u64 total, u32 a, u64 base, u32 lo) {
  u32 row = w.row[a];
  if (w.action[row] == REMOVE) return;
  spread_slot(to, 0, to.m, total, base + action_position(w, a, lo),
              content_of_row(w, b, keys, row));
}

// Put the actions of touched leaves first … last - 1, all in one stretch. A leaf with very many is
// put on a list for the whole grid.
__device__ void place_actions(const Store& to, const Batch& b, const Work& w, const u64* keys,
                              u64 total, const Stretch& stretch, u32 first_rank, u32 first,
                              u32 last) {
  bool few = w.begin[last] - w.begin[first] <= MANY_ACTIONS;
  for (u32 t = first; t < last; t = few ? last : t + 1) {
    u32 lo = w.begin[t], hi = w.begin[few ? last : t + 1];
    if (hi - lo > MANY_ACTIONS) {
      if (lane_id() == 0) w.window[atomicAdd((u64*)&w.report[CROWDED], 1ull)] = t;
      continue;
    }
    for (u32 a = lo + lane_id(); a < hi; a += 32) {
      u32 k = w.rank[w.row[a]] - first_rank;
      put_action(to, b, w, keys, total, a, stretch.base[k], w.begin[stretch.leaf[k]]);
    }
  }
}

// Mark what the actions do to the segments. A slot that is overwritten counts as removed and
// inserted again, because its action writes the whole slot.
__device__ void mark_stretch(const Work& w, Stretch& stretch, u32 first_rank, u32 lo, u32 hi) {
  u32* marks = (u32*)stretch.marks;
  for (u32 i = lane_id(); i < STRETCH * (SEGMENT + 1); i += 32) marks[i] = 0;
  __syncwarp();
  for (u32 a = lo + lane_id(); a < hi; a += 32) {
    u32 row = w.row[a];
    u8 action = w.action[row];
    u32 mark = action == INSERT ? 1u : 1u << 16;
    atomicAdd(&stretch.marks[w.rank[row] - first_rank][w.position[row]], mark);
    if (action == WRITE)
      atomicAdd(&stretch.marks[w.rank[row] - first_rank][w.position[row] + 1], 1u);
  }
  __syncwarp();
}

// Where a slot goes in its segment, found by search; for stretches with too many actions to mark.
__device__ __forceinline__ int target_of(const Work& w, int t, u32 position, u32 held) {
  if (position >= held) return -1;
  if (t < 0) return position;
  Shift shift = shift_of(w, w.begin[t], w.begin[t + 1], position);
  return shift.removed || shift.overwritten ? -1 : int(position) + shift.by;
}

__device__ void place_slots(const Store& from, const Store& to, const Work& w, u64 total,
                            const Stretch& stretch, u32 first, u32 n, u32 held, bool marked) {
  for (u32 k0 = 0; k0 < n; k0 += ABREAST) {
    Content slot[ABREAST][SLOTS_A_LANE];
    int place[ABREAST][SLOTS_A_LANE];
#pragma unroll
    for (int i = 0; i < ABREAST; ++i) {
      u32 k = min(k0 + i, n - 1);
      u32 filled = __shfl_sync(ALL_LANES, held, k);
      Slot at = segment_at(from, first + k);
      if (k0 + i >= n) filled = 0;
      if (marked) find_targets(stretch.marks[k], filled, true, place[i]);
#pragma unroll
      for (int j = 0; j < SLOTS_A_LANE; ++j) {
        if (!marked) place[i][j] = target_of(w, stretch.leaf[k], lane_id() + 32 * j, filled);
        if (place[i][j] >= 0) slot[i][j] = content_at(from, at, lane_id() + 32 * j);
      }
    }
#pragma unroll
    for (int i = 0; i < ABREAST; ++i)
#pragma unroll
      for (int j = 0; j < SLOTS_A_LANE; ++j)
        if (place[i][j] >= 0)
          spread_slot(to, 0, to.m, total, stretch.base[min(k0 + i, n - 1)] + place[i][j],
                      slot[i][j]);
  }
}

__device__ void rebuild_stretch(const Store& from, const Store& to, const Batch& b, const Work& w,
                              const u64* keys, u64 total, Stretch& stretch, u32 first) {
  u32 lane = lane_id(), n = min(u32(STRETCH), (1u << from.m) - first);
  u32 touched = w.report[TOUCHED], t = lower_bound(w.touched, 0u, touched, first);
  if (lane < STRETCH) stretch.leaf[lane] = -1;
  __syncwarp();
  bool in = lane < n && t + lane < touched && w.touched[t + lane] < first + n;
  if (in) stretch.leaf[w.touched[t + lane] - first] = t + lane;
  u32 leaves = __popc(__ballot_sync(ALL_LANES, in));
  u32 count = lane < n ? slots_in(from, first + lane) : 0;
  u64 base = base_by_warp(from, first, from.m) + warp_inclusive(count) - count;
  if (lane < STRETCH) stretch.base[lane] = base;
  __syncwarp();
  int own = lane < n ? stretch.leaf[lane] : -1;
  u32 held = count - (own >= 0 ? net_change(w, own, own + 1) : 0);
  bool marked = w.begin[t + leaves] - w.begin[t] <= MANY_ACTIONS;
  if (marked) mark_stretch(w, stretch, first, w.begin[t], w.begin[t + leaves]);
  place_slots(from, to, w, total, stretch, first, n, held, marked);
  place_actions(to, b, w, keys, total, stretch, first, t, t + leaves);
  __syncwarp();
}

// Write the counts of a fresh store of `total` slots, and the fences that no slot sets: of an empty
// one all, and that of the last segment where it is not there. By the whole grid.
__device__ void write_tree(const Store& to, u64 total) {
  u64 thread = thread_number<THREADS>(), threads = thread_count<THREADS>();
  spread_counts(to, 1, to.m, total, thread, threads);
  if (thread == 0) to.counts[1] = total;
  if (total == 0) close_empty(to, 0, to.m, thread, threads);
  else if (thread == 0 && to.parts < 4) to.fences[heap_number(to, (1u << to.m) - 1)] = LAST_FENCE;
}

// Write `from`, changed by the located batch, into `to`: `total` slots.
extern "C" __global__ void __launch_bounds__(THREADS)
    rebuild(const __grid_constant__ Store from, const __grid_constant__ Store to,
          const __grid_constant__ Batch b, const __grid_constant__ Work w, i64 total,
          u64* changed, u8* inserted) {
  extern __shared__ u64 shared[];
  Stretch* stretch = (Stretch*)shared;  // one a warp
  const u64* keys = row_keys(w);
  u64 warp = warp_number<THREADS>(), warps = warp_count<THREADS>();
  for (u64 first = warp * STRETCH; first < 1ull << from.m; first += warps * STRETCH)
    rebuild_stretch(from, to, b, w, keys, total, stretch[warp_id()], u32(first));
  write_tree(to, total);
  write_changes(w, keys, changed, inserted);
  grid_sync();
  for (u32 i = 0; i < w.report[CROWDED]; ++i) {
    u32 t = w.window[i], lo = w.begin[t];
    u64 base = base_in_window(from, w.touched[t], from.m);
    for (u64 a = lo + thread_number<THREADS>(); a < w.begin[t + 1]; a += thread_count<THREADS>())
      put_action(to, b, w, keys, total, u32(a), base, lo);
  }
}

// Spread `total` slots over `to`, of which the columns, whose keys rise, have those from `first` to
// `last` - 1. With the last one the tree is written.
extern "C" __global__ void __launch_bounds__(THREADS)
    spread(const __grid_constant__ Store to, Columns from, i64 first, i64 last, i64 total) {
  for (i64 n = first + thread_number<THREADS>(); n < last; n += thread_count<THREADS>())
    spread_slot(to, 0, to.m, total, n, content_of(from, n - first));
  if (last == total) write_tree(to, total);
}

// The tree with one level more: old windows keep their numbers and counts. The left half of each
// old leaf is its segment; the right half is new, empty, and has the fence of its successor.
extern "C" __global__ void __launch_bounds__(THREADS)
    grow_tree(const u64* old_fences, const u32* old_counts, u64* fences, u32* counts, int m) {
  u64 leaves = 1ull << (m - 1);
  for (u64 i = thread_number<THREADS>(); i < leaves; i += thread_count<THREADS>()) {
    fences[i] = old_fences[i];
    counts[i] = old_counts[i];
    counts[leaves + i] = old_counts[leaves + i];
    counts[2 * (leaves + i)] = old_counts[leaves + i];
    counts[2 * (leaves + i) + 1] = 0;
    u64 next = i + 1;
    fences[leaves + i] =
        next == leaves ? LAST_FENCE : old_fences[(leaves + next) >> (__ffsll(next))];
  }
}
