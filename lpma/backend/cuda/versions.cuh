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

// The state of a filled slot that is a stored edge.
__device__ __forceinline__ State stored_at(const Store& s, Slot at, u32 position) {
  return {true, weight_at(s, at, position), time_at(s, at, position)};
}

// The state of a key in the store, at any place. REQUIRES: no versions.
__device__ __forceinline__ State stored_of(const Store& s, u64 key) {
  u32 rank = rank_of_key(s, key), count = slots_in(s, rank);
  Slot at = segment_at(s, rank);
  u32 position = lower_bound(s, at, count, key);
  if (position < count && key_at(s, at, position) == key) return stored_at(s, at, position);
  return {false, 0, 0};
}

// Write down a state's weight and time at place i of the columns that are wanted.
__device__ __forceinline__ void put_state(const State& state, u64 i, Weight* weights, i64* times) {
#if WEIGHT_BYTES
  if (weights) weights[i] = state.weight;
#endif
#if TIMES
  if (times) times[i] = state.time;
#endif
}

// Answer edge query i: zeros where the edge is not there.
__device__ __forceinline__ void put_found(State state, u64 i, bool* found, Weight* weights,
                                          i64* times) {
  if (!state.present) state = {false, 0, 0};
  found[i] = state.present;
  put_state(state, i, weights, times);
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
    State state = stored_at(s, at, position);
    next_slot(s, rank, position);
    return state;
  }
  State state = {false, 0, 0};
  u64 key = key_at(s, at, position);
  do {
    u32 seq = seq_at(s, at, position);
    if (seq == 0)
      state = stored_at(s, at, position);
    else if (i64(seq) <= limit)
      state = apply_operation(operation_at(b, seq - 1), is_marker(key), state);
    next_slot(s, rank, position);
    if (rank == 1u << s.m) break;
    at = segment_at(s, rank);
  } while (key_at(s, at, position) == key);
  return state;
}
