// Steps that many threads take together, with one barrier each.
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

// Who takes the steps: the whole grid, in a cooperative launch.
struct WholeGrid {
  __device__ __forceinline__ bool is_first() const { return thread_number() == 0; }
  template <typename Record>
  __device__ __forceinline__ Record read_together(const Record* record) const {
    grid_sync();
    return read_for_block(record);
  }
};

// One block, which has the records in shared memory.
struct OneBlock {
  __device__ __forceinline__ bool is_first() const { return threadIdx.x == 0; }
  template <typename Record>
  __device__ __forceinline__ Record read_together(const Record* record) const {
    __syncthreads();
    return *record;
  }
};

template <typename Record, class Scope = WholeGrid>
struct Steps {
  Record* records;
  Scope scope = {};
  u32 turn = 0;  // whose record this step adds to

  __device__ __forceinline__ Record* record() const { return records + turn; }

  // For records that the host has not cleared. REQUIRES: a barrier before anything is counted.
  __device__ __forceinline__ void clear() const {
    if (scope.is_first()) records[0] = records[1] = {};
  }

  // Wait for all to end this step. Returns what it counted.
  __device__ __forceinline__ Record end() {
    Record counted = scope.read_together(record());
    u32 before = turn == 0 ? 2 : turn - 1;
    if (scope.is_first()) records[before] = {};  // which everyone has read, for the step after next
    turn = turn == 2 ? 0 : turn + 1;
    return counted;
  }
};
