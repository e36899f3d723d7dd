// The key that a row of a batch gives a store, and what makes a row bad: as Columns.validated and
// `key_rows` of lpma/backend/protocol.py say. Both sorts (sort.cu, rank.cuh) share it.
#pragma once
#include "lpma/backend/cuda/kernels/work.cuh"

enum Direction { FORWARD, REVERSE, BOTH };

constexpr u64 NO_KEY = LAST_FENCE - 1;  // behind all keys, and the one below LAST_FENCE
constexpr u32 MAX_VERTEX = MARKER - 1;
constexpr int MAX_HOPS = 255;

// What a batch's keys are made of: its rows or, where `made` is not 0, as many keys that already
// stand in w.key[0].
struct Source {
  i64 n, made;  // n: the most keys there can be
  int direction, checked;
};

__device__ __forceinline__ Source source_of(i64 rows, int direction, int checked, i64 made) {
  return {made ? made : rows * (direction == BOTH ? 2 : 1), made, direction, checked};
}

// Do count(word) for each word of the report that counts a row like this.
template <class Count>
__device__ __forceinline__ void count_if_bad(int kind, u32 u, u32 v, Count count) {
  if (kind > LAST_KIND) count(BAD_KIND);
  if (u > MAX_VERTEX || v > MAX_VERTEX) count(BAD_VERTEX);
  if (kind == HOPS && (v < 1 || v > MAX_HOPS)) count(BAD_HOPS);
}

// back: the key is seen from the target; second: it is the second key of its row.
__device__ __forceinline__ u64 key_of(u32 u, u32 v, int kind, bool back, bool second) {
  if (is_query(kind) || (second && u == v)) return NO_KEY;
  if (kind == ADD_VERTEX || kind == REMOVE_VERTEX) return back ? NO_KEY : edge_key(u, MARKER);
  return back ? edge_key(v, u) : edge_key(u, v);
}
