// Steps that a whole grid takes together, with one barrier each; in a cooperative launch.
//
// Idea: what a step counts, such as the items it enqueues, is added to a record. All threads read
// the record after the barrier, so they all decide alike what comes next. Three records take turns:
// while a step adds to its own, slow threads may still be reading the one before, and the one after
// is being cleared.
//
// A record is an integer of 32 or 64 bits, or a structure of such. All zeros mean that nothing was
// counted: to find a minimum, keep the maximum of LIMIT - x.
//
// Requires: three records, of which the first two are clear; all threads take the same steps.
#pragma once
#include "lpma/cuda/grid.cuh"

template <typename Record>
struct Steps {
  Record* records;
  u32 turn = 0;  // whose record this step adds to

  __device__ __forceinline__ Record* record() const { return records + turn; }

  // For records that the host has not cleared. REQUIRES: a barrier before anything is counted.
  __device__ __forceinline__ void clear() const {
    if (thread_number() == 0) records[0] = records[1] = {};
  }

  // Wait for all to end this step. Returns what it counted.
  __device__ __forceinline__ Record end() {
    grid_sync();
    Record counted = read_for_block(record());
    u32 before = turn == 0 ? 2 : turn - 1;
    if (thread_number() == 0) records[before] = {};  // everyone has read it: for the next but one
    turn = turn == 2 ? 0 : turn + 1;
    return counted;
  }
};
