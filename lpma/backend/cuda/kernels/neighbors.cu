// Neighbour queries: located first, then copied with the *output* split evenly over warps.
//
// Idea: a vertex's edges are consecutive slots in key order. So the answers of all queries are one
// array, whose row r belongs to the last query with indptr[query] <= r. A warp takes `tiles` times
// 32 consecutive rows, whichever queries they belong to: a hub is read by as many warps as it
// needs. A lane finds the query of its first row by binary search in indptr; from there on it moves
// 32 slots at a time, or on to the next query.
//
// Bytes a row: 8 + weight + time read, 4 + weight + time written, and since rows begin anywhere, up
// to a sector more of each column that is read. A query: 24 written and read, and the walk.
// The host does not wait for the number of rows: it has allocated by a guess and launched the kernels
// that copy, which do nothing if the room is too small.
//
// Within a mixed batch: beside.cu.
#include "lpma/backend/cuda/kernels/neighbors.cuh"

// The last query from `first` on with indptr[query] <= row; it is likely near `first`. REQUIRES:
// indptr[first] <= row < indptr[n].
__device__ __forceinline__ i64 query_from(const i64* indptr, i64 first, i64 n, i64 row) {
  for (i64 step = 1; first + step < n; step <<= 1) {
    if (indptr[first + step] > row) return last_start(indptr, first, first + step - 1, row);
    first += step;
  }
  return last_start(indptr, first, n - 1, row);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    locate_neighbors(const __grid_constant__ Store s, const u32* vertices, i64 n, i64* indptr,
                     Cursor* begin, i64* before, u64* status, i64* answer, i64 ticket) {
  auto find = [&](i64, u32 u) { return slots_between(s, edge_key(u, 0), edge_key(u, MARKER)); };
  locate_queries(vertices, n, indptr, begin, before, status, answer, ticket, find);
}

// Each row's neighbour and, where wanted, its weight and time; nothing if there are more than `room`
// rows. A thread for each of `room` rows.
extern "C" __global__ void __launch_bounds__(THREADS)
    read_neighbors(const __grid_constant__ Store s, i64 n, const i64* indptr, const Cursor* begin,
                   const i64* before, i64 room, i64 tiles, u32* ids, Weight* weights,
                   i64* times) {
  i64 rows = indptr[n];
  if (rows > room) return;
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
    if (WEIGHT_BYTES && weights) weights[row] = weight_at(s, slot, at.position);
    if (TIMES && times) times[row] = time_at(s, slot, at.position);
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
