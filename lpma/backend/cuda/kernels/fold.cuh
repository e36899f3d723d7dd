// A batch's columns, and what an operation does to the state of a key.
//
// Source: the paper, Definition 2. The CPU's twin is lpma/backend/numba/fold.py.
#pragma once
#include "lpma/backend/cuda/kernels/store.cuh"

// The kinds of operations, as in lpma.batch.columns.Kind.
constexpr int APPEND = 0, DELETE_EDGE = 1, ADD_VERTEX = 2, REMOVE_VERTEX = 3, EXPIRE = 4;
constexpr int FIRST_QUERY = 5, HOPS = 8, LAST_QUERY = 10, SET_EDGE = 11, LAST_KIND = SET_EDGE;

__device__ __forceinline__ bool is_query(int kind) {
  return kind >= FIRST_QUERY && kind <= LAST_QUERY;
}

// Whether an operation reads the weight.
__device__ __forceinline__ bool is_weighted(int kind) {
  return kind == APPEND || kind == SET_EDGE;
}

// A batch, by the place of an operation in it. A null column means that all operations have the
// same value.
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

// The state of a key. With LATE times, the times of operations have not arrived yet when they are
// folded: `time` is then the place of the operation whose time it will be, or STORED for that of
// the stored edge.
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

// An operation, read. With LATE times its `time` is its place.
struct Operation {
  int kind;
  double weight;
  i64 time;
};

template <bool LATE = false>
__device__ __forceinline__ Operation operation_at(const Batch& b, u32 place) {
  int kind = kind_of(b, place);
  return {kind, is_weighted(kind) ? weight_of(b, place) : 0, LATE ? i64(place) : time_of(b, place)};
}

// The state after an operation. A sum is rounded to the store's type after each operation, so that
// how operations are grouped into batches does not show in the result.
__device__ __forceinline__ State apply_operation(const Operation& o, bool marker, State before) {
  State after = before;
  if (o.kind == EXPIRE) {  // with LATE times `expire` of runs.cuh does this
    after.present = before.present && before.time >= o.time;
    return after;
  }
  if (o.kind == SET_EDGE) {
    after.weight = WEIGHT_BYTES ? Weight(o.weight) : Weight(0);
    after.present = WEIGHT_BYTES ? after.weight > 0 : o.weight > 0;
  } else if (o.kind == APPEND) {
#if WEIGHT_BYTES
    if (before.present) {
      after.weight = before.weight + Weight(o.weight);
      after.present = after.weight >= 0;
    } else {
      after.present = Weight(o.weight) > 0;
      after.weight = Weight(o.weight);
    }
#else
    if (o.weight == 0) return before;
    after.present = o.weight > 0;
    after.weight = 0;
#endif
  } else {
    after.present = o.kind == ADD_VERTEX && marker;
    after.weight = 0;
  }
  if (after.present) after.time = o.time;
  return after;
}

// Why an operation left its edge as it was, numbered as in lpma/pma/counters.py; EXPIRED counts what
// `expire` of runs.cuh lets go.
enum Unchanged {
  NOT_POSITIVE,
  UNDERFLOW_TO_0,
  DELETE_ABSENT,
  ROUNDED_OFF,
  EXPIRED,
  REASONS,
  CHANGED = -1
};

__device__ __forceinline__ int why_unchanged(const Operation& o, State before, State after) {
  if (o.kind == DELETE_EDGE) return before.present ? CHANGED : DELETE_ABSENT;
  if (!is_weighted(o.kind) || (o.kind == SET_EDGE && before.present)) return CHANGED;
#if WEIGHT_BYTES
  Weight d = Weight(o.weight);
  if (d == 0 && o.weight != 0) return UNDERFLOW_TO_0;
  if (!before.present) return d > 0 ? CHANGED : NOT_POSITIVE;
  return d != 0 && after.weight == before.weight ? ROUNDED_OFF : CHANGED;
#else
  return o.weight == 0 || (o.weight < 0 && !before.present) ? NOT_POSITIVE : CHANGED;
#endif
}
