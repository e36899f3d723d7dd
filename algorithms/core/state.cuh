// The state of cooperative.cu: what is being peeled, what a step found, and what comes next.
//
// Encoding: a task is first entry << 8 | number of entries.
#pragma once
#include "lpma/cuda/scan.cuh"
#include "lpma/cuda/search.cuh"
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr u32 BLOCK = 1024;
constexpr u32 CHUNK = 128;  // entries of a task: fits 8 bits
constexpr u32 LOADS_IN_FLIGHT = CHUNK / 32;  // loads a lane has under way
constexpr i32 WINDOW = 16;
constexpr u32 WIDE = 4;  // tasks a warp
constexpr u32 ALONE_TASKS = BLOCK;  // the most that block 0 takes on alone
constexpr u32 ALONE_ENTRIES = LOADS_IN_FLIGHT * BLOCK;
constexpr u32 ALONE_LISTED = 8 * BLOCK;
constexpr i32 NOBODY = 0x7fffffff;  // the least degree among none

enum Step : u32 { PEEL, SCAN, SPLIT, DONE };

struct Graph {
  const i64* __restrict__ indptr;
  const u32* __restrict__ indices;
  u32 n;
  i32* degree;  // neighbours that are not peeled yet
  i32* core;
  u64* queue;  // tasks: first entry << 8 | number of entries
  u32* near;  // u32[n]
  u32* far;  // u32[2 n]: the list, and the one it is compacted to

  __device__ __forceinline__ u32* far_list(u32 side) const { return far + u64(side) * n; }
};

// What a step found. All zero means nothing: the least degree is kept as NOBODY - degree.
struct Counts {
  u32 tasks, entries;  // entries modulo 2^32: exact where tasks are few
  u32 near, far;
  u32 nearness;
};

// The same in all threads of the grid.
struct alignas(16) State {
  u32 step;
  i32 level, limit, guess;
  u64 base;  // the frontier is tasks base … base + tasks - 1 of the queue
  u32 tasks, entries;
  u32 near, far;  // the lengths of the lists
  u32 side, unused;  // the far list is far_list(side)
};

// What comes after a step that found `counts`.
__device__ __forceinline__ void advance(State& s, const Counts& c) {
  i32 least = NOBODY - i32(c.nearness);
  u32 before = s.tasks;
  s.base += before;
  s.tasks = c.tasks;
  s.entries = c.entries;
  switch (s.step) {
    case PEEL:
      s.near += c.near;
      s.step = s.tasks ? PEEL : SCAN;
      s.guess = s.level + 1;
      break;
    case SCAN:
      if (s.tasks) {
        s.level = s.guess;
        s.step = PEEL;
      } else if (least != NOBODY) {
        s.guess = least;
      } else {
        s.step = SPLIT;
        s.limit = s.level + 1 + WINDOW;
      }
      break;
    case SPLIT:
      s.near = c.near;
      s.far = c.far;
      s.side ^= 1;
      s.guess = least;
      if (s.near) {
        s.step = SCAN;
      } else if (least != NOBODY) {
        s.limit = least + WINDOW;
      } else {
        s.step = DONE;
      }
  }
}

__device__ __forceinline__ bool is_small(const State& s) {
  switch (s.step) {
    case PEEL: return s.tasks <= ALONE_TASKS && s.entries <= ALONE_ENTRIES;
    case SCAN: return s.near <= ALONE_LISTED;
    case SPLIT: return s.far <= ALONE_LISTED;
    default: return false;
  }
}
