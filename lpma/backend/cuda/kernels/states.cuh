// The state of a key in the store, and how a state is written down as an answer.
#pragma once
#include "lpma/backend/cuda/kernels/fold.cuh"

// The state of a filled slot.
__device__ __forceinline__ State stored_at(const Store& s, Slot at, u32 position) {
  return {true, weight_at(s, at, position), time_at(s, at, position)};
}

// The state of a key in the store, wherever it is.
__device__ __forceinline__ State stored_of(const Store& s, u64 key) {
  u32 rank = rank_of_key(s, key), count = slots_in(s, rank);
  Slot at = segment_at(s, rank);
  u32 position = lower_bound(s, at, count, key);
  if (position < count && key_at(s, at, position) == key) return stored_at(s, at, position);
  return {false, 0, 0};
}

// Write down a state's weight and time at place i of the columns that are wanted.
__device__ __forceinline__ void put_state(const State& state, u64 i, Weight* weights, i64* times) {
  if (WEIGHT_BYTES && weights) weights[i] = state.weight;
  if (TIMES && times) times[i] = state.time;
}

// Answer edge query i: zeros where the edge is not there.
__device__ __forceinline__ void put_found(State state, u64 i, bool* found, Weight* weights,
                                          i64* times) {
  if (!state.present) state = {false, 0, 0};
  found[i] = state.present;
  put_state(state, i, weights, times);
}
