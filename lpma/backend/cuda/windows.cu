// The mover's second half: a plan's windows of more than one segment.
//
// Every stored slot and every action finds its place in closed form (work.cuh), so nothing is
// merged. A window of a few segments is a warp's, one of up to BLOCK_SLOTS a block's, staged in
// shared memory. A larger one is everybody's, staged in scratch, with the grid's barrier between:
// its slots are shared out by segment, its actions one a thread, so that neither a hub nor a flood
// of one vertex keeps a single warp busy.
//
// Bottom-up goes a round a layer, as in the paper; a window that an inner one preceded moves that
// one's slots again. Top-down has one round. Counts above the leaves are right before it begins
// (plan.cu); a leaf's is what it will be, and what it holds follows from its actions.
//
// Bytes: a window reads and writes all its slots, and twice where it is large.
#include "lpma/backend/cuda/move.cuh"
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK_SLOTS = SEGMENT > 512 ? 2 * SEGMENT : 1024;
constexpr u32 BLOCK_SEGMENTS = BLOCK_SLOTS / SEGMENT;

// Who moves a window: a warp, or a block. Both stage it in their part of the shared memory.
struct Warp {
  static constexpr u32 SIZE = 32;
  static constexpr u32 SLOTS = BLOCK_SLOTS / WARPS;
  static __device__ __forceinline__ u32 rank() { return lane_id(); }
  static __device__ __forceinline__ void sync() { __syncwarp(); }
  static __device__ __forceinline__ u32 exclusive(u32 x, u32& total) {
    u32 inclusive = warp_inclusive(x);
    total = __shfl_sync(ALL_LANES, inclusive, 31);
    return inclusive - x;
  }
};

struct Block {
  static constexpr u32 SIZE = THREADS;
  static constexpr u32 SLOTS = BLOCK_SLOTS;
  static __device__ __forceinline__ u32 rank() { return threadIdx.x; }
  static __device__ __forceinline__ void sync() { __syncthreads(); }
  static __device__ __forceinline__ u32 exclusive(u32 x, u32& total) {
    return block_exclusive<THREADS>(x, total);
  }
};

// A window's slots in shared memory, and for each of its segments where they begin and which
// touched leaf it is (-1: none that moves now).
struct Stage {
  Columns slots;
  u32* base;
  int* leaf;
};

// The part of a team that begins at slot `first` of the shared memory.
__device__ __forceinline__ Stage stage_in(char* shared, u32 first, bool versions) {
  Stage stage;
  stage.slots.keys = (u64*)shared + first;
  shared += BLOCK_SLOTS * sizeof(u64);
  stage.slots.times = (i64*)shared + first;
  shared += TIMES * BLOCK_SLOTS * sizeof(i64);
  stage.slots.weights = (Weight*)shared + first;
  shared += BLOCK_SLOTS * WEIGHT_BYTES;
  stage.base = (u32*)shared + first / SEGMENT;
  shared += BLOCK_SEGMENTS * sizeof(u32);
  stage.leaf = (int*)shared + first / SEGMENT;
  shared += BLOCK_SEGMENTS * sizeof(int);
  stage.slots.seqs = versions ? (u32*)shared + first : nullptr;
  return stage;
}

// A listed window.
struct Window {
  u32 number, first, lo, hi;  // its first rank; its touched leaves are lo … hi - 1
  int layer;
};

__device__ __forceinline__ Window listed_window(const Moving& v, u32 i) {
  u32 number = v.w.window[i];
  int layer = v.s.m - (31 - __clz(number));
  return {number, (number << layer) - (1u << v.s.m), v.w.window_first[i], v.w.window_last[i], layer};
}

// Find where each segment's slots begin in the window as it will be. Returns how many there are.
template <class Team>
__device__ u32 prepare_window(const Moving& v, const Stage& stage, const Window& window) {
  u32 n = 1u << window.layer, before = 0;
  for (u32 tile = 0; tile < n; tile += Team::SIZE) {
    u32 k = tile + Team::rank(), total;
    u32 base = before + Team::exclusive(k < n ? slots_in(v.s, window.first + k) : 0, total);
    if (k < n) {
      stage.base[k] = base;
      stage.leaf[k] = -1;
    }
    before += total;
  }
  Team::sync();
  for (u32 t = window.lo + Team::rank(); t < window.hi; t += Team::SIZE)
    if (v.w.layer[t] == window.layer && !v.settled)
      stage.leaf[v.w.touched[t] - window.first] = t;
  Team::sync();
  return before;
}

template <class Team>
__device__ void stage_window(const Moving& v, const Stage& stage, const Window& window) {
  const Work& w = v.w;
#pragma unroll 4
  for (u32 i = Team::rank(); i < SEGMENT << window.layer; i += Team::SIZE) {
    u32 k = i / SEGMENT, position = i % SEGMENT;
    int t = stage.leaf[k];
    if (position >= held_now(v, window.first + k, t)) continue;
    Shift shift = {0, false, false};
    if (t >= 0) shift = shift_of(w, w.begin[t], w.begin[t + 1], position);
    if (shift.removed) continue;
    put_content(stage.slots, stage.base[k] + position + shift.by,
                content_at(v.s, segment_at(v.s, window.first + k), position), !shift.overwritten);
  }
  if (v.settled) return;
  for (u32 a = w.begin[window.lo] + Team::rank(); a < w.begin[window.hi]; a += Team::SIZE) {
    u32 row = w.row[a], k = w.rank[row] - window.first;
    int t = stage.leaf[k];
    if (t < 0 || w.action[row] == REMOVE) continue;
    u32 to = stage.base[k] + action_position(w, a, w.begin[t]);
    if (w.action[row] == INSERT)
      put_content(stage.slots, to, content_of_row(w, v.b, v.keys, v.places, row, v.versions), true);
    else
      put_value(stage.slots, to, w.weight[row], time_of_row(w, v.b, row));
  }
}

// Windows that fit a team's stage but not `smallest` slots, of one layer (or of all: layer 0).
template <class Team>
__device__ void move_by_team(const Moving& v, char* shared, int only, u32 smallest) {
  u32 teams = THREADS / Team::SIZE, team = threadIdx.x / Team::SIZE;
  Stage stage = stage_in(shared, team * Team::SLOTS, has_versions(v.s));
  u32 windows = v.w.report[WINDOWS];
  for (u32 i = blockIdx.x * teams + team; i < windows; i += gridDim.x * teams) {
    Window window = listed_window(v, i);
    u64 slots = u64(SEGMENT) << window.layer;
    if ((only && window.layer != only) || slots > Team::SLOTS || slots <= smallest) continue;
    u32 total = prepare_window<Team>(v, stage, window);
    stage_window<Team>(v, stage, window);
    Team::sync();
    for (u32 n = Team::rank(); n < total; n += Team::SIZE)
      spread_slot(v.s, window.first, window.layer, total, n, content_of(stage.slots, n));
    spread_counts(v.s, window.number, window.layer, total, Team::rank(), Team::SIZE);
    if (total == 0) close_empty(v.s, window.first, window.layer, Team::rank(), Team::SIZE);
    Team::sync();
  }
}

// Windows that fit shared memory: a warp each where they are small, else a block each.
__device__ void move_staged_windows(const Moving& v, char* shared, int only) {
  if (!only || (SEGMENT << only) <= Warp::SLOTS) move_by_team<Warp>(v, shared, only, 0);
  __syncthreads();
  if (!only || (SEGMENT << only) > Warp::SLOTS) move_by_team<Block>(v, shared, only, Warp::SLOTS);
}

__device__ void gather_segment(const Moving& v, u32 rank, int layer, u32 lo, u32 hi, u64 offset) {
  const Work& w = v.w;
  u32 t = lower_bound(w.touched, lo, hi, rank);
  bool pending = !v.settled && t < hi && w.touched[t] == rank && w.layer[t] == layer;
  u32 held = held_now(v, rank, pending ? i64(t) : -1);
  u64 base = offset + base_by_warp(v.s, rank, layer);
  Slot at = segment_at(v.s, rank);
  for (u32 position = lane_id(); position < held; position += 32) {
    Shift shift = {0, false, false};
    if (pending) shift = shift_of(w, w.begin[t], w.begin[t + 1], position);
    if (!shift.removed)
      put_content(v.scratch, base + position + shift.by, content_at(v.s, at, position),
                  !shift.overwritten);
  }
}

__device__ void gather_action(const Moving& v, u32 a, u32 first, int layer, u32 lo, u32 hi,
                              u64 offset) {
  const Work& w = v.w;
  u32 row = w.row[a];
  if (w.action[row] == REMOVE) return;
  u32 rank = w.rank[row];
  u32 t = lower_bound(w.touched, lo, hi, rank);
  if (w.layer[t] != layer) return;
  u64 to = offset + base_in_window(v.s, rank, layer) + action_position(w, a, w.begin[t]);
  if (w.action[row] == INSERT)
    put_content(v.scratch, to, content_of_row(w, v.b, v.keys, v.places, row, v.versions), true);
  else
    put_value(v.scratch, to, w.weight[row], time_of_row(w, v.b, row));
}

// Windows too large for a block, of one layer (or of all: layer 0), by the whole grid.
__device__ void move_large_windows(const Moving& v, int only) {
  const Work& w = v.w;
  u32 windows = w.report[LARGE_WINDOWS];
  u64 warp = warp_number<THREADS>(), warps = warp_count<THREADS>();
  for (int phase = 0; phase < 2; ++phase) {
    u64 given = 0;  // work handed out so far: the next piece goes to the next warp
    for (u32 j = 0; j < windows; ++j) {
      u32 i = w.large[j];
      auto [window, first, lo, hi, layer] = listed_window(v, i);
      if (only && layer != only) continue;
      u64 offset = w.window_offset[i], total = v.s.counts[window];
      u64 start = (warp + warps - given % warps) % warps;
      if (phase == 0) {
        for (u64 k = start; k < 1ull << layer; k += warps)
          gather_segment(v, first + u32(k), layer, lo, hi, offset);
        if (!v.settled)
          for (u64 a = w.begin[lo] + start * 32 + lane_id(); a < w.begin[hi]; a += warps * 32)
            gather_action(v, a, first, layer, lo, hi, offset);
      } else {
        for (u64 n = start * 32 + lane_id(); n < total; n += warps * 32)
          spread_slot(v.s, first, layer, total, n, content_of(v.scratch, offset + n));
        spread_counts(v.s, window, layer, total, start * 32 + lane_id(), warps * 32);
        if (total == 0) close_empty(v.s, first, layer, start * 32 + lane_id(), warps * 32);
      }
      given += 1ull << layer;
    }
    grid_sync();
  }
}

// Carry out a plan's windows, its leaves being done.
extern "C" __global__ void __launch_bounds__(THREADS)
    move_windows(const __grid_constant__ Store s, const __grid_constant__ Batch b,
                 const __grid_constant__ Work w, const __grid_constant__ Columns scratch,
                 int top_down, int versions, int settled) {
  extern __shared__ char shared[];
  Moving v = {s, b, w, scratch, row_keys(w), row_places(w), versions, settled};
  bool large = w.report[LARGE_SLOTS];
  if (top_down) {
    move_staged_windows(v, shared, 0);
    if (large) move_large_windows(v, 0);
    return;
  }
  for (int layer = 1; layer <= s.m; ++layer) {
    if (!w.report[WINDOWS_BY_LAYER + layer]) continue;
    if ((u64(SEGMENT) << layer) <= BLOCK_SLOTS)
      move_staged_windows(v, shared, layer);
    else
      move_large_windows(v, layer);
    grid_sync();
  }
}
