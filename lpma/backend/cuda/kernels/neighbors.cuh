// The slots of a vertex: where they begin, how many they are, and how to get to one of them.
//
// Idea: most vertices have their edges in a leaf or two. One walk down the tree finds where they
// begin, and the fences of the next NEAR leaves where they end. Only for the others are the counts
// of the tree added up, by two more walks; a slot of theirs is then found by order statistics
// (slot_number).
#pragma once
#include "lpma/backend/cuda/kernels/states.cuh"
#include "lpma/cuda/lookback.cuh"
#include "lpma/cuda/rows.cuh"

struct Cursor {
  u32 rank, position;
};

// Move on by `steps` filled slots. REQUIRES: there are as many.
__device__ __forceinline__ void advance(const Store& s, Cursor& at, u64 steps) {
  u64 position = at.position + steps;
  for (u32 count = slots_in(s, at.rank); position >= count; count = slots_in(s, at.rank)) {
    position -= count;
    ++at.rank;
  }
  at.position = u32(position);
}

constexpr int NEAR = 4;
constexpr i64 LIGHT = -1;
enum Told { TICKET, CANDIDATES, PRESENT, NO_VERTEX };  // words of an answer

// The slot of row `offset` of a query that begins at `begin`; `before` slots precede it, or it is
// LIGHT.
__device__ __forceinline__ Cursor slot_of(const Store& s, Cursor begin, i64 before, u64 offset) {
  if (before != LIGHT && offset > 2 * SEGMENT && offset > 32) {
    Found found = slot_number(s, before + offset);
    return {found.rank, found.position};
  }
  advance(s, begin, offset);
  return begin;
}

// The slots of one query: where the first is, or would be, and how many there are.
struct Located {
  Cursor begin;
  i64 before;  // slots to its left; LIGHT: all lie in NEAR + 1 leaves, and nobody counted
  u64 rows;
};

// Tell the host something, last of all `ticket`, for which it watches.
__device__ __forceinline__ void tell(i64* answer, i64 ticket, i64 candidates, i64 rows, i64 bad) {
  answer[CANDIDATES] = candidates;
  answer[PRESENT] = rows;
  answer[NO_VERTEX] = bad;
  __threadfence_system();
  *(volatile i64*)answer = ticket;
}

// Count the threads of a block that met a bad id. For whole blocks.
__device__ __forceinline__ void count_bad_ids(bool is_bad, u32* seen) {
  u32 bad = __syncthreads_count(is_bad);
  if (threadIdx.x == 0 && bad) atomicAdd(seen, bad);
  __threadfence();
}

// The rows of every query, as find(query, vertex) locates them: indptr[0 … n], and where each query
// begins. MARKER, which is not a vertex, has no rows, and is counted for the host; with `ticket` 0
// the host is told nothing. Blocks count such vertices in the second word of `status`, before they
// publish their sums. A thread a query.
template <class Find>
__device__ __forceinline__ void locate_queries(const u32* vertices, i64 n, i64* indptr,
                                               Cursor* begin, i64* before, u64* status,
                                               i64* answer, i64 ticket, Find find) {
  u32 tile = take_tile(status);
  u32* bad = (u32*)status + 1;
  i64 query = i64(tile) * blockDim.x + threadIdx.x;
  Located found = {{0, 0}, LIGHT, 0};
  u32 vertex = query < n ? vertices[query] : 0;
  count_bad_ids(vertex == MARKER, bad);
  if (query < n && vertex != MARKER) found = find(query, vertex);
  u64 row = grid_prefix<THREADS>(status, tile, found.rows);
  if (query >= n) return;
  begin[query] = found.begin;
  before[query] = found.before;
  i64 rows = indptr[query + 1] = i64(row + found.rows);
  if (query == 0) indptr[0] = 0;
  if (query < n - 1 || !ticket) return;
  __threadfence();
  tell(answer, ticket, rows, rows, *(const volatile u32*)bad);
}

// The slots whose keys are at least `first` and below `end`, by the counts of the tree.
__device__ __forceinline__ Located counted_between(const Store& s, u64 first, u64 end) {
  Found found = first_at_or_after(s, first);
  u64 rows = first_at_or_after(s, end).before - found.before;
  return {{found.rank, found.position}, i64(found.before), rows};
}

// The same, by the fences of a few leaves if that is enough.
__device__ __forceinline__ Located slots_between(const Store& s, u64 first, u64 end) {
  u32 p = 1, leaves = 1u << s.m;
  for (int i = 0; i < s.m; ++i) p = 2 * p + (first > s.fences[p]);
  u32 rank = p - leaves, count = s.counts[p];
  Slot at = segment_at(s, rank);
  u32 position = lower_bound(s, at, count, first);
  Located found = {{rank, position}, LIGHT, 0};
  for (int near = 0; near <= NEAR; ++near) {
    u32 next = rank + 1;
    if (next == leaves || s.fences[heap_number(s, next)] >= end) {
      found.rows += lower_bound(s.keys[at.level] + at.index, position, count, end) - position;
      return found;
    }
    found.rows += count - position;
    rank = next;
    position = 0;
    at = segment_at(s, rank);
    count = slots_in(s, rank);
  }
  return counted_between(s, first, end);
}
