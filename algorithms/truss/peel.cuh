// Truss decomposition by peeling, in one cooperative launch: state, levels and rounds.
//
// Idea: a level takes the least support of any living edge and queues the edges of that support.
// Its rounds go through the queue. The edges queued before a round are GOING: they take their
// standing triangles away, by two atomic subtractions each, and queue the edges that come down to
// the level's support. A triangle with several edges that are GOING is taken by the one of smallest
// number. An edge is STANDING, also while it is queued, then GOING, then GONE. That changes only
// between barriers, so what blocks do within a round does not depend on each other. An edge is
// queued by the one subtraction that reaches the level; what its support is afterwards does not
// matter.
//
// Encoding: an item of the queue is piece << 32 | edge: a piece of PIECE candidates of an edge's
// list, so that an edge with many triangles is spread over blocks. A warp takes an item. The living
// edges are a list that every level compacts into the other of two buffers, so a level costs what
// lives, and levels without edges cost nothing.
//
// Counters that a level adds to are in record level % 3, which is zeroed a level before its next
// use. A round reads the end of the queue between two barriers during which nobody queues.
//
// Triangles, the template's parameter, says how an edge's triangles are found:
//
// bool shrink(p, count)  before a level of `count` living edges; all threads call it
// u32 pieces(e)          the number of items that e is
// each(e, piece, visit)  visit(f, g) for every triangle e, f, g of that piece, by the whole warp at
//                        once, with f < 0 on lanes without one
#pragma once
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/lanes.cuh"

constexpr u32 PIECE = 128;
enum Fate : u8 { STANDING, GOING, GONE };

// What a level counts; algorithms/truss/cuda.py packs it.
struct Level {
  u64 living;
  i32 least;  // support of a living edge
  i32 unused;
};

// What all blocks share.
struct Control {
  u64 queued;
  Level levels[3];
};

struct Peeling {
  i32* support;
  u8* fate;
  i32* truss;
  u64* queue;      // piece << 32 | edge
  i32* living;     // the two buffers of living edges
  i32* spare;
  Control* control;
};

constexpr i32 NO_SUPPORT = 0x7fffffff;

// Reserve places for `count` of each lane's items behind *end; for one whole warp.
__device__ __forceinline__ u64 reserve(u64* end, u32 count) {
  u32 upto = warp_inclusive(count);
  u64 first = 0;
  if (lane_id() == 31 && upto) first = atomicAdd(end, u64(upto));
  return __shfl_sync(ALL_LANES, first, 31) + upto - count;
}

// Queue each lane's edge e, if it has one; for one whole warp.
template <class Triangles>
__device__ __forceinline__ void enqueue(const Peeling& p, const Triangles& triangles, bool has,
                                        u32 e, i32 support) {
  if (!__any_sync(ALL_LANES, has)) return;
  u32 pieces = has ? triangles.pieces(e) : 0;
  u64 place = reserve(&p.control->queued, pieces);
  if (!has) return;
  p.truss[e] = support + 2;
  for (u32 i = 0; i < pieces; ++i) p.queue[place + i] = u64(i) << 32 | e;
}

// Keep the living edges of the last level that are not gone, and find their least support.
__device__ __forceinline__ void compact(const Peeling& p, u32 level) {
  const Level& from = p.control->levels[level % 3];
  Level& to = p.control->levels[(level + 1) % 3];
  const i32* living = level % 2 ? p.spare : p.living;
  i32* kept = level % 2 ? p.living : p.spare;
  i64 count = i64(from.living);
  i32 least = NO_SUPPORT;
  for (i64 start = thread_number() - lane_id(); start < count; start += thread_count()) {
    i64 i = start + lane_id();
    i32 e = i < count ? living[i] : 0;
    bool lives = i < count && p.fate[e] != GONE;
    u64 place = reserve(&to.living, lives);
    if (!lives) continue;
    kept[place] = e;
    least = min(least, p.support[e]);
  }
  __syncwarp();
  least = lanes_min(least);
  if (lane_id() == 0 && least != NO_SUPPORT) atomicMin(&to.least, least);
}

// Queue the edges of least support. An edge without any triangle is gone at once.
template <class Triangles>
__device__ __forceinline__ void begin(const Peeling& p, const Triangles& triangles, u32 level) {
  const Level& now = p.control->levels[(level + 1) % 3];
  const i32* living = level % 2 ? p.living : p.spare;
  i64 count = i64(now.living);
  i32 least = now.least;
  for (i64 start = thread_number() - lane_id(); start < count; start += thread_count()) {
    i64 i = start + lane_id();
    u32 e = i < count ? living[i] : 0;
    bool peeled = i < count && p.support[e] == least;
    if (peeled && least == 0) {
      p.fate[e] = GONE;
      p.truss[e] = 2;
      peeled = false;
    }
    enqueue(p, triangles, peeled, e, least);
  }
}

// Take away the triangle e, f, g of each lane, if it has one; e is GOING. For one whole warp.
template <class Triangles>
__device__ __forceinline__ void take(const Peeling& p, const Triangles& triangles, i32 least,
                                     i32 e, i32 f, i32 g) {
  bool f_falls = false, g_falls = false;
  if (f >= 0) {
    u8 of_f = p.fate[f], of_g = p.fate[g];
    bool taken = of_f == GONE || of_g == GONE || (of_f == GOING && f < e) ||
                 (of_g == GOING && g < e);
    if (!taken && of_f == STANDING) f_falls = atomicSub(&p.support[f], 1) == least + 1;
    if (!taken && of_g == STANDING) g_falls = atomicSub(&p.support[g], 1) == least + 1;
  }
  enqueue(p, triangles, f_falls, u32(f), least);
  enqueue(p, triangles, g_falls, u32(g), least);
}

template <class Triangles>
__device__ __forceinline__ void one_round(const Peeling& p, const Triangles& triangles, i32 least,
                                      i64 first, i64 last) {
  i64 warps = warp_count();
  for (i64 i = first + warp_number(); i < last; i += warps) {
    u64 item = p.queue[i];
    i32 e = i32(u32(item));
    triangles.each(e, u32(item >> 32),
                   [&](i32 f, i32 g) { take(p, triangles, least, e, f, g); });
  }
}

// Find the truss numbers below `until`. The edges that live at the end keep the numbers that they
// were given.
template <class Triangles>
__device__ void peel(const Peeling& p, Triangles& triangles, i64 until) {
  i64 gone = 0, going = 0;  // items of the queue before these places are GONE, or GOING
  for (u32 level = 0;; ++level) {
    compact(p, level);
    grid_sync();
    Level& now = p.control->levels[(level + 1) % 3];
    i64 count = i64(now.living);
    i32 least = now.least;
    if (count == 0 || least + 2 >= until) return;
    if (thread_number() == 0) p.control->levels[(level + 2) % 3] = {0, NO_SUPPORT, 0};
    if (triangles.shrink(p, count)) grid_sync();
    begin(p, triangles, level);
    for (;;) {
      grid_sync();  // all is queued
      i64 queued = i64(*(volatile u64*)&p.control->queued);
      for (i64 i = gone + thread_number(); i < queued; i += thread_count())
        p.fate[u32(p.queue[i])] = i < going ? GONE : GOING;
      gone = going;
      going = queued;
      grid_sync();  // all fates are set
      if (gone == going) break;
      one_round(p, triangles, least, gone, going);
    }
  }
}
