// Folding a run: what all operations on one key come to.
//
// Source: Definition 2 and store.md. Short runs are folded one operation after the other. A long
// one, a hot key's, would hold up its batch; but what a stretch of operations does to a key is a
// function of a simple form, and two such functions compose to one, so a block folds its parts
// side by side. The form: a present edge of weight w >= least becomes w + sum; anything else
// becomes `reset`, whatever it was. With inexact weights the grouping may show in the last digit.
#pragma once
#include "work.cuh"

constexpr int LONG_RUN = 64;  // operations on one key from which a block folds them

struct Effect {
  Weight least, sum;
  i64 time;     // of the last operation that applies to what passes; where `timed`
  bool timed;
  State reset;  // also what an absent edge becomes
};

__device__ __forceinline__ Weight infinite() {
  return Weight(__longlong_as_double(0x7ff0000000000000ll));
}

__device__ __forceinline__ Effect no_effect() {
  return {Weight(-1), Weight(0), 0, false, {false, Weight(0), 0}};
}

template <bool LATE>
__device__ __forceinline__ Effect effect_of(const Batch& b, u32 place, bool marker) {
  State absent = {false, Weight(0), 0};
  Effect e = {infinite(), Weight(0), LATE ? i64(place) : time_of(b, place), true,
              apply_operation<LATE>(b, place, marker, absent)};
  if (kind_of(b, place) != APPEND) return e;
#if WEIGHT_BYTES
  Weight d = Weight(weight_of(b, place));
  e.least = -d;
  e.sum = d;
#else
  if (weight_of(b, place) == 0) return no_effect();
#endif
  return e;
}

__device__ __forceinline__ State apply_effect(const Effect& e, State before) {
  if (!before.present || before.weight < e.least) return e.reset;
  return {true, before.weight + e.sum, e.timed ? e.time : before.time};
}

// First f, then g. Weights that pass f and fail g meet the same end as those that fail both: f
// never makes more of an absent edge than of a present one that passes.
__device__ __forceinline__ Effect compose(const Effect& f, const Effect& g) {
  return {max(f.least, g.least - f.sum), f.sum + g.sum, g.timed ? g.time : f.time,
          f.timed || g.timed, apply_effect(g, f.reset)};
}

// The first row after `lo` with another key.
__device__ __forceinline__ i64 run_end(const u64* keys, i64 lo, i64 n) {
  u64 key = keys[lo];
  i64 low = lo + 1, high = n;
  for (i64 step = 1; low + step < n && keys[low + step] == key; step *= 2) low += step;
  while (low < high) {
    i64 middle = (low + high) / 2;
    if (keys[middle] == key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The state of a key after rows lo … hi - 1, by one thread.
template <bool LATE>
__device__ __forceinline__ State fold(const Batch& b, const u32* places, i64 lo, i64 hi,
                                      bool marker, State state) {
  for (i64 row = lo; row < hi; ++row) state = apply_operation<LATE>(b, places[row], marker, state);
  return state;
}

// The same by a whole block; every thread gets it.
template <bool LATE>
__device__ State fold_by_block(const Batch& b, const u32* places, i64 lo, i64 hi, bool marker,
                               State state) {
  __shared__ Effect part[THREADS];
  i64 each = (hi - lo + THREADS - 1) / THREADS;
  i64 first = min(lo + i64(threadIdx.x) * each, hi), last = min(first + each, hi);
  Effect mine = no_effect();
  for (i64 row = first; row < last; ++row)
    mine = compose(mine, effect_of<LATE>(b, places[row], marker));
  __syncthreads();  // a former call's readers are done
  part[threadIdx.x] = mine;
  for (int by = 1; by < THREADS; by *= 2) {
    __syncthreads();
    if (threadIdx.x % (2 * by) == 0)
      part[threadIdx.x] = compose(part[threadIdx.x], part[threadIdx.x + by]);
  }
  __syncthreads();
  return apply_effect(part[0], state);
}
