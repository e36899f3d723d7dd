// Runs of versions: the slots of one key within a mixed batch, and what they add up to.
//
// Source: the paper, Section VI-A, Definition 7. A run holds at most one stored edge, of seq 0, and
// then the key's versions by rising seq, which is 1 + the version's place in the batch. A query at
// place `limit` sees exactly the versions with seq <= limit. A run may span segments, some of them
// empty. Outside a mixed batch every slot is a run and there is nothing to fold.
#pragma once
#include "lpma/backend/cuda/fold.cuh"

constexpr i64 NO_LIMIT = 0x7fffffffffffffffll;  // sees everything

// What query i sees: its limit, or everything where the column of limits is null.
__device__ __forceinline__ i64 limit_of(const i64* limits, i64 i) {
  return limits ? limits[i] : NO_LIMIT;
}

// Move on to the next filled slot; rank 2^m where there is none.
__device__ __forceinline__ void next_slot(const Store& s, u32& rank, u32& position) {
  ++position;
  while (position >= slots_in(s, rank)) {
    position = 0;
    if (++rank == 1u << s.m) return;
  }
}

// Whether the filled slot at (rank, position) is the first of its key.
__device__ __forceinline__ bool starts_run(const Store& s, u32 rank, u32 position) {
  if (!has_versions(s)) return true;
  u64 key = key_at(s, segment_at(s, rank), position);
  if (position) return key_at(s, segment_at(s, rank), position - 1) != key;
  while (rank--) {
    u32 count = slots_in(s, rank);
    if (count) return key_at(s, segment_at(s, rank), count - 1) != key;
  }
  return true;
}

// The state, at place `limit`, of the key whose run starts at (rank, position). Both move on to
// where the next run starts. REQUIRES: a filled slot there.
__device__ __forceinline__ State run_state(const Store& s, const Batch& b, u32& rank, u32& position,
                                           i64 limit) {
  Slot at = segment_at(s, rank);
  if (!has_versions(s)) {
    State state = {true, weight_at(s, at, position), time_at(s, at, position)};
    next_slot(s, rank, position);
    return state;
  }
  State state = {false, 0, 0};
  u64 key = key_at(s, at, position);
  do {
    u32 seq = seq_at(s, at, position);
    if (seq == 0)
      state = {true, weight_at(s, at, position), time_at(s, at, position)};
    else if (i64(seq) <= limit)
      state = apply_operation(operation_at(b, seq - 1), is_marker(key), state);
    next_slot(s, rank, position);
    if (rank == 1u << s.m) break;
    at = segment_at(s, rank);
  } while (key_at(s, at, position) == key);
  return state;
}
