// Neighbour queries: located first, then copied with the *output* split evenly over warps.
//
// Idea: a vertex's edges are consecutive slots in key order. So the answers of all queries are one
// array, whose row r belongs to the last query with indptr[query] <= r. A warp takes `tiles` times
// 32 consecutive rows, whichever queries they belong to: a hub is read by as many warps as it
// needs. A lane finds the query of its first row by binary search in indptr, and the slot by order
// statistics (slot_number); from there on it moves 32 slots at a time, or on to the next query.
//
// Bytes a row: 8 + weight + time read, 4 + weight + time written. A query: 16 written and read, and
// the walk down the tree. `locate_neighbors` counts, scans (lookback.cuh) and writes indptr in one
// launch; only indptr[n] is read back, to size the output.
//
// Within a mixed batch a slot need not be an edge. The located rows are then *candidates*;
// `read_present` folds the run that begins at each and packs those that are present, also in one
// launch.
#include "lpma/backend/cuda/versions.cuh"
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

// The last query from `first` on with indptr[query] <= row; it is likely near `first`. REQUIRES:
// indptr[first] <= row < indptr[n].
__device__ __forceinline__ i64 query_from(const i64* indptr, i64 first, i64 n, i64 row) {
  for (i64 step = 1; first + step < n; step <<= 1) {
    if (indptr[first + step] > row) return last_start(indptr, first, first + step - 1, row);
    first += step;
  }
  return last_start(indptr, first, n - 1, row);
}

// The slot of row `offset` of a query that begins at `begin`, which `before` slots precede.
__device__ __forceinline__ Cursor slot_of(const Store& s, Cursor begin, u64 before, u64 offset) {
  if (offset > 2 * SEGMENT && offset > 32) {
    Found found = slot_number(s, before + offset);
    return {found.rank, found.position};
  }
  advance(s, begin, offset);
  return begin;
}

// The rows of every query: indptr[0 … n], and where each query begins. With versions, the rows of
// its candidates. Two threads a query, one for either end.
extern "C" __global__ void __launch_bounds__(THREADS)
    locate_neighbors(const __grid_constant__ Store s, const u32* vertices, i64 n, i64* indptr,
                     Cursor* begin, i64* before, u64* status) {
  u32 tile = take_tile(status);
  i64 query = i64(tile) * (blockDim.x >> 1) + (threadIdx.x >> 1);
  bool end = threadIdx.x & 1;
  Found found = {0, 0, 0};
  if (query < n) found = first_at_or_after(s, edge_key(vertices[query], end ? MARKER : 0));
  u64 other = __shfl_xor_sync(ALL_LANES, found.before, 1);
  u64 rows = end ? 0 : other - found.before;
  u64 row = grid_prefix<THREADS>(status, tile, rows);
  if (query >= n || end) return;
  begin[query] = {found.rank, found.position};
  before[query] = i64(found.before);
  indptr[query + 1] = i64(row + rows);
  if (query == 0) indptr[0] = 0;
}

// Each row's neighbour and, where wanted, its weight and time.
extern "C" __global__ void __launch_bounds__(THREADS)
    read_neighbors(const __grid_constant__ Store s, i64 n, const i64* indptr, const Cursor* begin,
                   const i64* before, i64 rows, i64 tiles, u32* ids, Weight* weights,
                   i64* times) {
  i64 warp = warp_number();
  i64 row = warp * tiles * 32 + lane_id();
  i64 stop = min(rows, (warp + 1) * tiles * 32);
  if (row >= stop) return;
  i64 query = last_start(indptr, 0, n - 1, row);
  Cursor at = slot_of(s, begin[query], before[query], row - indptr[query]);
  i64 end = indptr[query + 1];
  while (true) {
    Slot slot = segment_at(s, at.rank);
    ids[row] = key_dst(key_at(s, slot, at.position));
#if WEIGHT_BYTES
    if (weights) weights[row] = weight_at(s, slot, at.position);
#endif
#if TIMES
    if (times) times[row] = time_at(s, slot, at.position);
#endif
    row += 32;
    if (row >= stop) return;
    if (row < end) {
      advance(s, at, 32);
      continue;
    }
    query = query_from(indptr, query + 1, n, row);
    at = begin[query];
    end = indptr[query + 1];
    advance(s, at, row - indptr[query]);  // fewer than 32: the lane's last row was not its
  }
}

// Of candidates 0 … rows - 1, whose queries are those of indptr, pack those that are present at
// their query's limit. packed[c]: how many candidates before c are present, for c up to `rows`. ids
// null: count only. A thread a candidate, and rows + 1 threads at least.
extern "C" __global__ void __launch_bounds__(THREADS)
    read_present(const __grid_constant__ Store s, const __grid_constant__ Batch b,
                 const i64* limits, i64 n, const i64* indptr, const Cursor* begin,
                 const i64* before, i64 rows, i64* packed, u32* ids, Weight* weights, i64* times,
                 u64* status) {
  u32 tile = take_tile(status);
  i64 row = i64(tile) * blockDim.x + threadIdx.x;
  State state = {false, 0, 0};
  u32 id = 0;
  if (row < rows) {
    i64 query = last_start(indptr, 0, n - 1, row);
    Cursor at = slot_of(s, begin[query], before[query], row - indptr[query]);
    if (starts_run(s, at.rank, at.position)) {
      id = key_dst(key_at(s, segment_at(s, at.rank), at.position));
      state = run_state(s, b, at.rank, at.position, limit_of(limits, query));
    }
  }
  u64 to = grid_prefix<THREADS>(status, tile, state.present);
  if (row <= rows) packed[row] = i64(to);
  if (!state.present || !ids) return;
  ids[to] = id;
#if WEIGHT_BYTES
  if (weights) weights[to] = state.weight;
#endif
#if TIMES
  if (times) times[to] = state.time;
#endif
}
