// A batch's columns, and what an operation does to the state of a key (Definition 2, store.md).
#pragma once
#include "store.cuh"

// Operation kinds, as lpma.batch.Kind.
constexpr int APPEND = 0, DELETE_EDGE = 1, ADD_VERTEX = 2, REMOVE_VERTEX = 3, FIRST_QUERY = 4;

// A batch by place. A null column means that every operation has the same.
struct Batch {
  i64 n;
  const u8* kind;      // null: `one_kind`
  const u32* src;
  const u32* dst;
  const void* weight;  // float or double; null: 1
  const i64* time;     // null: `now`
  i64 now;
  int wide;  // 1 where the weights are double
  int one_kind;
};

// The state of one key. With LATE times, those of operations are not there yet when they are
// folded: `time` is then the place of the operation whose time it will be, or STORED.
struct State {
  bool present;
  Weight weight;
  i64 time;
};

constexpr i64 STORED = -1;

__device__ __forceinline__ int kind_of(const Batch& b, u32 place) {
  return b.kind ? b.kind[place] : b.one_kind;
}

__device__ __forceinline__ double weight_of(const Batch& b, u32 place) {
  if (!b.weight) return 1.0;
  return b.wide ? ((const double*)b.weight)[place] : double(((const float*)b.weight)[place]);
}

__device__ __forceinline__ i64 time_of(const Batch& b, u32 place) {
  return b.time ? b.time[place] : b.now;
}

// The state after row `place`. Sums are rounded to the store's type after each operation, so that
// no grouping of operations into batches shows in the result.
template <bool LATE = false>
__device__ __forceinline__ State apply_operation(const Batch& b, u32 place, bool marker,
                                                 State before) {
  State after = before;
  int kind = kind_of(b, place);
  if (kind == APPEND) {
    double d = weight_of(b, place);
#if WEIGHT_BYTES
    if (before.present) {
      after.weight = before.weight + Weight(d);
      after.present = after.weight >= 0;
    } else {
      after.present = Weight(d) > 0;
      after.weight = Weight(d);
    }
#else
    if (d == 0) return before;
    after.present = d > 0;
    after.weight = 0;
#endif
  } else {
    after.present = kind == ADD_VERTEX && marker;
    after.weight = 0;
  }
  if (after.present) after.time = LATE ? i64(place) : time_of(b, place);
  return after;
}
