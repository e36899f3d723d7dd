// The mover's second half: a plan's windows of more than one segment.
//
// Idea: every stored slot and every action finds its place by itself (work.cuh), so nothing is
// merged. A warp moves a window of a few segments and a block one of up to BLOCK_SLOTS, staged in
// shared memory. The whole grid moves a larger one, staged in scratch, with a barrier in between:
// its slots are shared out by segment and its actions by thread, so that neither a hub nor a flood
// of edges at one vertex holds up a single warp.
//
// Bottom-up goes one round a layer, as in the paper: a window moves the slots of inner windows
// again. Top-down has one round. Counts above the leaves are right before it begins (judge.cuh); that
// of a leaf is what it will be, and what it holds now follows from its actions.
//
// Bytes: a window reads and writes all its slots, twice where it is large.
#pragma once
#include "lpma/backend/cuda/kernels/move.cuh"
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK_SLOTS = SEGMENT > 512 ? 2 * SEGMENT : 1024;
constexpr u32 BLOCK_SEGMENTS = BLOCK_SLOTS / SEGMENT;

// The threads that move a window: a warp or a block. Each stages it in its part of the shared
// memory.
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

// A window's slots in shared memory and, for each of its segments, where its slots begin and which
// touched leaf it is (-1: none that moves now).
struct Stage {
  Columns slots;
  u32* base;
  int* leaf;
};

// The part of a team that begins at slot `first` of the shared memory.
__device__ __forceinline__ Stage stage_in(char* shared, u32 first) {
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
  return stage;
}

// A listed window.
struct Window {
  u32 number, first, lo, hi;  // its first rank; its touched leaves are lo … hi - 1
  int layer;
};

__device__ __forceinline__ Window listed_window(const Moving& moving, u32 i) {
  u32 number = moving.w.window[i];
  int layer = moving.s.m - (31 - __clz(number));
  u32 first = (number << layer) - (1u << moving.s.m);
  return {number, first, moving.w.window_first[i], moving.w.window_last[i], layer};
}

// Find where the slots of each segment begin in the window as it will be. Returns their number.
template <class Team>
__device__ u32 prepare_window(const Moving& moving, const Stage& stage, const Window& window) {
  u32 n = 1u << window.layer, before = 0;
  for (u32 tile = 0; tile < n; tile += Team::SIZE) {
    u32 k = tile + Team::rank(), total;
    u32 base = before + Team::exclusive(k < n ? slots_in(moving.s, window.first + k) : 0, total);
    if (k < n) {
      stage.base[k] = base;
      stage.leaf[k] = -1;
    }
    before += total;
  }
  Team::sync();
  for (u32 t = window.lo + Team::rank(); t < window.hi; t += Team::SIZE)
    if (moving.w.layer[t] == window.layer && !moving.settled)
      stage.leaf[moving.w.touched[t] - window.first] = t;
  Team::sync();
  return before;
}

// Put slot `position` of a segment where it will stand: in `to`, the segment's slots begin at `base`.
// t: which touched leaf the segment is, -1 if none that moves now.
__device__ __forceinline__ void gather_slot(const Moving& moving, const Columns& to, u64 base,
                                            u32 rank, int t, u32 position) {
  Shift shift = {0, false, false};
  if (t >= 0) shift = shift_of(moving.w, moving.w.begin[t], moving.w.begin[t + 1], position);
  if (shift.removed) return;
  Content slot = content_at(moving.s, segment_at(moving.s, rank), position);
  put_content(to, base + position + shift.by, slot, !shift.overwritten);
}

// The same of action `a`, of touched leaf t, which does not remove its slot.
__device__ __forceinline__ void gather_action(const Moving& moving, const Columns& to, u64 base,
                                              u32 t, u32 a) {
  const Work& w = moving.w;
  u32 row = w.row[a];
  u64 at = base + action_position(w, a, w.begin[t]);
  if (w.action[row] == INSERT)
    put_content(to, at, content_of_row(moving, row), true);
  else
    put_value(to, at, w.weight[row], time_of_row(w, moving.b, row));
}

template <class Team>
__device__ void stage_window(const Moving& moving, const Stage& stage, const Window& window) {
  const Work& w = moving.w;
#pragma unroll 4
  for (u32 i = Team::rank(); i < SEGMENT << window.layer; i += Team::SIZE) {
    u32 k = i / SEGMENT, position = i % SEGMENT;
    int t = stage.leaf[k];
    if (position < held_now(moving, window.first + k, t))
      gather_slot(moving, stage.slots, stage.base[k], window.first + k, t, position);
  }
  if (moving.settled) return;
  for (u32 a = w.begin[window.lo] + Team::rank(); a < w.begin[window.hi]; a += Team::SIZE) {
    u32 row = w.row[a], k = w.rank[row] - window.first;
    int t = stage.leaf[k];
    if (t >= 0 && w.action[row] != REMOVE) gather_action(moving, stage.slots, stage.base[k], t, a);
  }
}

// Carry out a window in the stage of a team.
template <class Team>
__device__ __forceinline__ void move_window(const Moving& moving, const Stage& stage,
                                            const Window& window) {
  u32 total = prepare_window<Team>(moving, stage, window), first = window.first;
  int layer = window.layer;
  stage_window<Team>(moving, stage, window);
  Team::sync();
  for (u32 n = Team::rank(); n < total; n += Team::SIZE)
    spread_slot(moving.s, first, layer, total, n, content_of(stage.slots, n));
  spread_counts(moving.s, window.number, layer, total, Team::rank(), Team::SIZE);
  if (total == 0) close_empty(moving.s, first, layer, Team::rank(), Team::SIZE);
  Team::sync();
}

// Move the windows that fit the stage of a team but not `smallest` slots, of one layer (or of all:
// layer 0).
template <class Team>
__device__ void move_by_team(const Moving& moving, char* shared, int only, u32 smallest) {
  u32 teams = THREADS / Team::SIZE, team = threadIdx.x / Team::SIZE;
  Stage stage = stage_in(shared, team * Team::SLOTS);
  u32 windows = moving.w.report[WINDOWS];
  for (u32 i = blockIdx.x * teams + team; i < windows; i += gridDim.x * teams) {
    Window window = listed_window(moving, i);
    u64 slots = u64(SEGMENT) << window.layer;
    if ((only && window.layer != only) || slots > Team::SLOTS || slots <= smallest) continue;
    move_window<Team>(moving, stage, window);
  }
}

// Spread windows from … to - 1 of a layer evenly; a block each, by the whole grid. No batch is under
// way.
__device__ void even_out_windows(const Moving& moving, char* shared, int layer, u32 from, u32 to) {
  Stage stage = stage_in(shared, 0);
  u32 windows = 1u << (moving.s.m - layer);
  for (u32 j = from + blockIdx.x; j < to; j += gridDim.x)
    move_window<Block>(moving, stage, {windows + j, j << layer, 0, 0, layer});
}

// Move the windows that fit shared memory: the small ones by a warp each, the others by a block
// each.
__device__ void move_staged_windows(const Moving& moving, char* shared, int only) {
  if (!only || (SEGMENT << only) <= Warp::SLOTS) move_by_team<Warp>(moving, shared, only, 0);
  __syncthreads();
  if (!only || (SEGMENT << only) > Warp::SLOTS)
    move_by_team<Block>(moving, shared, only, Warp::SLOTS);
}

__device__ void gather_segment(const Moving& moving, u32 rank, int layer, u32 lo, u32 hi,
                               u64 offset) {
  const Work& w = moving.w;
  u32 t = lower_bound(w.touched, lo, hi, rank);
  bool pending = !moving.settled && t < hi && w.touched[t] == rank && w.layer[t] == layer;
  u32 held = held_now(moving, rank, pending ? i64(t) : -1);
  u64 base = offset + base_by_warp(moving.s, rank, layer);
  for (u32 position = lane_id(); position < held; position += 32)
    gather_slot(moving, moving.scratch, base, rank, pending ? int(t) : -1, position);
}

// Move the windows too large for a block, of one layer (or of all: layer 0), by the whole grid.
__device__ void move_large_windows(const Moving& moving, int only) {
  const Work& w = moving.w;
  u32 windows = w.report[LARGE_WINDOWS];
  u64 warp = warp_number<THREADS>(), warps = warp_count<THREADS>();
  for (int phase = 0; phase < 2; ++phase) {
    u64 given = 0;  // pieces of work handed out so far: the next goes to the next warp
    for (u32 j = 0; j < windows; ++j) {
      u32 i = w.large[j];
      auto [window, first, lo, hi, layer] = listed_window(moving, i);
      if (only && layer != only) continue;
      u64 offset = w.window_offset[i], total = moving.s.counts[window];
      u64 start = (warp + warps - given % warps) % warps;
      if (phase == 0) {
        for (u64 k = start; k < 1ull << layer; k += warps)
          gather_segment(moving, first + u32(k), layer, lo, hi, offset);
        if (!moving.settled)
          for (u64 a = w.begin[lo] + start * 32 + lane_id(); a < w.begin[hi]; a += warps * 32) {
            u32 row = w.row[a], rank = w.rank[row], t = lower_bound(w.touched, lo, hi, rank);
            if (w.action[row] != REMOVE && w.layer[t] == layer)
              gather_action(moving, moving.scratch, offset + base_in_window(moving.s, rank, layer),
                            t, u32(a));
          }
      } else {
        for (u64 n = start * 32 + lane_id(); n < total; n += warps * 32)
          spread_slot(moving.s, first, layer, total, n, content_of(moving.scratch, offset + n));
        spread_counts(moving.s, window, layer, total, start * 32 + lane_id(), warps * 32);
        if (total == 0) close_empty(moving.s, first, layer, start * 32 + lane_id(), warps * 32);
      }
      given += 1ull << layer;
    }
    grid_sync();
  }
}

// Carry out the windows of a plan, whose leaves have been moved; by the whole grid.
__device__ void move_all_windows(const Moving& moving, char* shared, bool top_down) {
  const Work& w = moving.w;
  // One loop for both, since what it calls is inlined, and takes long to compile.
  for (int layer = !top_down; layer <= (top_down ? 0 : moving.s.m); ++layer) {
    if (layer && !w.report[WINDOWS_BY_LAYER + layer]) continue;
    bool is_large = (u64(SEGMENT) << layer) > BLOCK_SLOTS;
    if (!is_large) move_staged_windows(moving, shared, layer);
    if (layer ? is_large : w.report[LARGE_SLOTS]) move_large_windows(moving, layer);
    if (layer) grid_sync();
  }
}
