// The tasks that a block has to do: a list in shared memory, which its warps fill and work off with
// no barrier.
//
// Idea: a warp that has nothing to do takes *tickets*, which are numbers of places in the list, and
// waits until a place is filled or nothing is pending any more. Pending are tasks that are not
// done: only they lead to more. A warp takes several tickets where several tasks wait for each
// warp. It never waits while it holds a task.
//
// Encoding: a task is first entry << 8 | number of entries, which is not 0. A place is 0 until it
// is filled.
//
// Requires: entries are fewer than 2^24; places that are 0 at first. They are 0 again at the end.
#pragma once
#include "lpma/cuda/lanes.cuh"

constexpr u32 PLACES = 4096;
constexpr u32 CHUNK = 128;  // entries of a task: fits 8 bits
constexpr u32 SLEEP_NS = 40;

// What a warp has: a ticket in each lane that waits, and so many tasks not done.
struct Tickets {
  u32 place = 0;
  bool waits = false;
  u32 held = 0;
};

struct Tasks {
  u32 place[PLACES];
  u32 taken, reserved;  // places
  u32 pending;

  // By one thread. A barrier follows.
  __device__ __forceinline__ void reset() { taken = reserved = pending = 0; }

  // Append up to ROWS rows of each lane, of length 0 for none, in pieces. Returns the rows that
  // there was room for, of `room` places, a bit each; once there is none, there is none until
  // reset. One row always has room. By a whole warp, that holds a task or is followed by a barrier.
  template <u32 ROWS>
  __device__ __forceinline__ u32 append(const u32 (&first)[ROWS], const u32 (&length)[ROWS],
                                        u32 room) {
    u32 pieces = 0;
#pragma unroll
    for (u32 j = 0; j < ROWS; ++j) pieces += (length[j] + CHUNK - 1) / CHUNK;
    u32 lanes = __ballot_sync(ALL_LANES, pieces), upto = lanes_before(lanes) + pieces;
    if (__any_sync(ALL_LANES, pieces > 1)) upto = warp_inclusive(pieces);
    u32 begin = 0;
    if (lane_id() == 31) begin = atomicAdd(&reserved, upto);
    begin = __shfl_sync(ALL_LANES, begin, 31) + upto - pieces;
    u32 fits = 0, end = begin;
#pragma unroll
    for (u32 j = 0; j < ROWS; ++j) {
      u32 next = end + (length[j] + CHUNK - 1) / CHUNK;
      if (next > (end ? room : PLACES)) break;
      fits |= 1u << j;
      end = next;
    }
    u32 all = lanes_sum(end - begin);
    if (lane_id() == 0) atomicAdd(&pending, all);
    __syncwarp();  // tasks are pending before others see them
    volatile u32* to = place + begin;
#pragma unroll
    for (u32 j = 0; j < ROWS; ++j)
      if (fits >> j & 1)
        for (u32 done = 0; done < length[j]; done += CHUNK)
          *to++ = (first[j] + done) << 8 | min(CHUNK, length[j] - done);
    return fits;
  }

  // The next tasks, one in each lane or 0; false when nothing is pending any more. By whole warps,
  // which are done with the tasks that they held.
  __device__ __forceinline__ bool next(Tickets& mine, u32& task) {
    __syncwarp();
    if (lane_id() == 0 && mine.held) atomicSub(&pending, mine.held);
    mine.held = 0;
    if (!__any_sync(ALL_LANES, mine.waits)) take(mine);
    if (!__any_sync(ALL_LANES, mine.waits)) return false;  // others have taken all places
    for (;;) {
      task = mine.waits ? *(volatile u32*)(place + mine.place) : 0;
      u32 ready = __ballot_sync(ALL_LANES, task != 0);
      mine.held = __popc(ready);
      if (ready) break;
      if (is_over(mine)) return false;
    }
    if (task) place[mine.place] = 0;
    mine.waits = mine.waits && !task;
    return true;
  }

 private:
  __device__ __forceinline__ void take(Tickets& mine) {
    u32 first = 0, count = 0;
    if (lane_id() == 0) {
      u32 filled = *(volatile u32*)&reserved, gone = *(volatile u32*)&taken;
      count = filled > gone ? min(32u, max(1u, (filled - gone) / (blockDim.x / 32))) : 1;
      first = atomicAdd(&taken, count);
    }
    mine.place = __shfl_sync(ALL_LANES, first, 0) + lane_id();
    mine.waits = lane_id() < __shfl_sync(ALL_LANES, count, 0) && mine.place < PLACES;
  }

  // Whether nothing is pending any more. A warp whose turn is not next sleeps if it is not.
  __device__ __forceinline__ bool is_over(const Tickets& mine) {
    u32 first = __shfl_sync(ALL_LANES, mine.place, 0);
    bool is_pending = *(volatile u32*)&pending != 0;
    if (__any_sync(ALL_LANES, is_pending)) {
      if (first > *(volatile u32*)&reserved) __nanosleep(SLEEP_NS);
      return false;
    }
    return true;
  }
};
