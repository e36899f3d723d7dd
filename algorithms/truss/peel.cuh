// Truss decomposition by peeling, in one cooperative launch: state, levels and rounds.
//
// Idea: a level queues the edges of the least support of any living edge. Its rounds go through the
// queue. The edges queued before a round are GOING: they take their
// standing triangles away, by two atomic subtractions each, and queue the edges that come down to
// the level's support. A triangle with several edges that are GOING is taken by the one of smallest
// number. An edge is STANDING, also while it is queued, then GOING, then GONE. That changes only
// between barriers, so what blocks do within a round does not depend on each other. An edge is
// queued by the one subtraction that reaches the level; what its support is afterwards does not
// matter.
//
// Encoding: an item of the queue is piece << 32 | edge: a piece of `PIECE` candidates of an edge's
// list, so that an edge with many triangles is spread over blocks. A warp takes an item.
//
// Not every level looks at all that lives: levels come in windows, from the least support of any
// living edge up to an eighth more. A window compacts the list of living edges into the other of
// two buffers and lists in the first, which is free then, those whose support is within it, the
// *near* ones; a subtraction that brings an edge into the window appends it. The window's levels go
// through the near edges alone, and leave none of them. (Bucketing by several levels is that of
// Dhulipala, Blelloch and Shun, "Julienne", SPAA 2017.)
//
// Compacting is a step of lpma/cuda/steps.cuh, whose record the rest of the window goes on with. A
// round reads the end of the queue between two barriers, when nobody queues.
//
// Triangles, the template's parameter, says how an edge's triangles are found:
//
// bool shrink(p, count)  before a window of `count` living edges; all threads call it
// u32 pieces(e)          the number of items that e is
// each(e, i, size, visit) visit(f, g) for the triangles e, f, g that the candidates i * size …
//                        hold, `size` of them, by the whole warp at once, with f < 0 on lanes
//                        without one
// PIECE, MOST_SHIFT      an item's candidates; into 1 << MOST_SHIFT parts it is split at most
#pragma once
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

enum Fate : u8 { STANDING, GOING, GONE };

constexpr i32 NO_SUPPORT = 0x7fffffff;

// What a window counts.
struct Window {
  u64 living;
  u64 near;
  i32 lowness;  // NO_SUPPORT - the least support of a living edge
  i32 unused;
};

// What all blocks share; algorithms/truss/cuda.py packs it.
struct Control {
  u64 queued;
  u64 living;  // edges at first
  Window windows[3];
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

// Queue each lane's edge e, if it has one; for one whole warp.
template <class Triangles>
__device__ __forceinline__ void enqueue(const Peeling& p, const Triangles& triangles, bool has,
                                        u32 e, i32 support) {
  if (!__any_sync(ALL_LANES, has)) return;
  if (has) p.truss[e] = support + 2;
  enqueue_pieces(has ? triangles.pieces(e) : 0, e, p.queue, &p.control->queued);
}

// Of a window, what its levels need.
struct Near {
  i32* edges;
  u64* count;
  i32 end;  // supports below are the window's
};

// Keep the edges of a list that are not gone, and find their least support.
__device__ __forceinline__ void compact(const Peeling& p, const i32* living, i64 count, i32* kept,
                                        Window* window) {
  i32 least = NO_SUPPORT;
  for (i64 start = thread_number() - lane_id(); start < count; start += thread_count()) {
    i64 i = start + lane_id();
    i32 e = i < count ? living[i] : 0;
    bool lives = i < count && p.fate[e] != GONE;
    append_of_lanes(lives, e, kept, &window->living);
    if (lives) least = min(least, p.support[e]);
  }
  __syncwarp();
  least = lanes_min(least);
  if (lane_id() == 0 && least != NO_SUPPORT) atomicMax(&window->lowness, NO_SUPPORT - least);
}

// Queue the edges of least support, and list the others that are near. An edge without any triangle
// is gone at once.
template <class Triangles>
__device__ __forceinline__ void begin(const Peeling& p, const Triangles& triangles,
                                      const i32* living, i64 count, i32 least, const Near& near) {
  for (i64 start = thread_number() - lane_id(); start < count; start += thread_count()) {
    i64 i = start + lane_id();
    i32 e = i < count ? living[i] : 0;
    i32 support = i < count ? p.support[e] : NO_SUPPORT;
    bool peeled = support == least;
    if (peeled && least == 0) {
      p.fate[e] = GONE;
      p.truss[e] = 2;
      peeled = false;
    }
    enqueue(p, triangles, peeled, u32(e), least);
    append_of_lanes(support > least && support < near.end, e, near.edges, near.count);
  }
}

// Queue the near edges of a support that is not the window's first.
template <class Triangles>
__device__ __forceinline__ void go_on(const Peeling& p, const Triangles& triangles, i32 level,
                                      const Near& near) {
  i64 count = i64(*(volatile u64*)near.count);
  for (i64 start = thread_number() - lane_id(); start < count; start += thread_count()) {
    i64 i = start + lane_id();
    i32 e = i < count ? near.edges[i] : 0;
    // An edge that is gone has less.
    enqueue(p, triangles, i < count && p.support[e] == level, u32(e), level);
  }
}

// Take away the triangle e, f, g of each lane, if it has one; e is GOING. For one whole warp.
template <class Triangles>
__device__ __forceinline__ void take(const Peeling& p, const Triangles& triangles, i32 level,
                                     const Near& near, i32 e, i32 f, i32 g) {
  i32 of_f = 0, of_g = 0;  // supports before; 0 if they stay
  if (f >= 0) {
    u8 fate_f = p.fate[f], fate_g = p.fate[g];
    bool taken = fate_f == GONE || fate_g == GONE || (fate_f == GOING && f < e) ||
                 (fate_g == GOING && g < e);
    if (!taken && fate_f == STANDING) of_f = atomicSub(&p.support[f], 1);
    if (!taken && fate_g == STANDING) of_g = atomicSub(&p.support[g], 1);
  }
  bool noted = of_f == level + 1 || of_g == level + 1 || of_f == near.end || of_g == near.end;
  if (!__any_sync(ALL_LANES, noted)) return;
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {
    i32 of = side ? of_g : of_f, edge = side ? g : f;
    enqueue(p, triangles, of == level + 1, u32(edge), level);
    append_of_lanes(of == near.end && of > level + 1, edge, near.edges, near.count);
  }
}

// A warp takes an item, or where there are few a part of one.
template <class Triangles>
__device__ __forceinline__ void one_round(const Peeling& p, const Triangles& triangles, i32 level,
                                          const Near& near, i64 first, i64 last) {
  i64 warps = warp_count();
  u32 shift = 0;  // 1 << shift parts
  while (shift < Triangles::MOST_SHIFT && (last - first) << shift + 1 <= warps) ++shift;
  for (i64 i = warp_number(); i < (last - first) << shift; i += warps) {
    u64 item = p.queue[first + (i >> shift)];
    i32 e = i32(u32(item));
    u32 part = u32(item >> 32) << shift | u32(i & ((1 << shift) - 1));
    triangles.each(e, part, Triangles::PIECE >> shift,
                   [&](i32 f, i32 g) { take(p, triangles, level, near, e, f, g); });
  }
}

// Find the truss numbers below `until`. The edges that live at the end keep the numbers that they
// were given.
template <class Triangles>
__device__ void peel(const Peeling& p, Triangles& triangles, i64 until) {
  i64 gone = 0, going = 0;  // items of the queue before these places are GONE, or GOING
  i64 count = i64(p.control->living);
  i32 *living = p.living, *spare = p.spare;
  for (Steps<Window> windows = {p.control->windows};;) {
    Window* window = windows.record();
    compact(p, living, count, spare, window);
    Window found = windows.end();
    i32* kept = spare;
    spare = living, living = kept;
    count = i64(found.living);
    i32 least = NO_SUPPORT - found.lowness;
    if (count == 0 || least + 2 >= until) return;
    if (triangles.shrink(p, count)) grid_sync();
    Near near = {spare, &window->near, least + 1 + least / 8};
    for (i32 level = least; level < near.end && level + 2 < until; ++level) {
      if (level == least)
        begin(p, triangles, living, count, least, near);
      else
        go_on(p, triangles, level, near);
      for (;;) {
        grid_sync();  // all is queued
        i64 queued = i64(*(volatile u64*)&p.control->queued);
        for (i64 i = gone + thread_number(); i < queued; i += thread_count())
          p.fate[u32(p.queue[i])] = i < going ? GONE : GOING;
        gone = going;
        going = queued;
        grid_sync();  // all fates are set
        if (gone == going) break;
        one_round(p, triangles, level, near, gone, going);
      }
    }
  }
}
