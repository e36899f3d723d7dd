// Queries inside a mixed batch that lies, sorted, beside the store.
//
// Source: the paper, Section VI-A, puts a batch's versions into the store, and compacts them after the
// queries. Here they stay where the sort has left them: the rows of a key, a *run*, are its versions
// by rising place, and a query at place `limit` folds those before it onto what is stored.
//
// A vertex's *candidates* are its slots and its rows, merged by key, a run before the slot of its
// key. The first row of a run stands for the key, with what is stored of it; the other rows, and
// that slot, are not present. To know where rows stand among the slots, `rank_rows` counts the
// slots before each row's key once for all queries. A candidate finds by binary search how many
// rows there are before it, and is then that row, or the slot of what is left of its number.
//
// Requires: rows sorted by sort_batch, in `work`. If rows are bad, nothing is sorted, and the batch
// counts as empty: its answers are not used.
#include "lpma/backend/cuda/kernels/neighbors.cuh"
#include "lpma/backend/cuda/kernels/work.cuh"

// The sorted rows of a batch.
struct Beside {
  const u64* keys;
  const u32* places;
  u32 n;
};

__device__ __forceinline__ Beside rows_beside(const Work& w) {
  return {row_keys(w), row_places(w), is_bad(w) ? 0 : u32(w.report[ROWS])};
}

// The state of the run that begins at `row`, at place `limit`; `state` is the stored one.
__device__ __forceinline__ State run_beside(const Batch& b, const Beside& rows, u32 row, i64 limit,
                                            State state) {
  u64 key = rows.keys[row];
  for (; row < rows.n && rows.keys[row] == key; ++row) {
    u32 place = rows.places[row];
    if (i64(place) >= limit) break;
    state = apply_operation(operation_at(b, place), is_marker(key), state);
  }
  return state;
}

// The queries of a batch, in rows `places` of it, which may lie in the host's memory.
extern "C" __global__ void __launch_bounds__(THREADS)
    list_asked(const __grid_constant__ Batch b, const i64* places, i64 n, u32* src, u32* dst,
               i64* limits) {
  i64 i = thread_number();
  if (i >= n) return;
  i64 place = places[i];
  limits[i] = place;
  src[i] = b.src[place];
  dst[i] = b.dst[place];
}

// before[row]: the slots whose keys are below the row's.
extern "C" __global__ void __launch_bounds__(THREADS)
    rank_rows(const __grid_constant__ Store s, const __grid_constant__ Work w, i64* before) {
  Beside rows = rows_beside(w);
  i64 row = thread_number();
  if (row < rows.n) before[row] = i64(first_at_or_after(s, rows.keys[row]).before);
}

// As find_edges in query.cu.
extern "C" __global__ void __launch_bounds__(128)
    find_edges_beside(const __grid_constant__ Store s, const __grid_constant__ Batch b,
                      const __grid_constant__ Work w, const u32* src, const u32* dst,
                      const i64* limits, i64 n, bool* found, Weight* weights, i64* times) {
  i64 i = thread_number();
  if (i >= n) return;
  u64 key = edge_key(src[i], dst ? dst[i] : MARKER);
  State state = stored_of(s, key);
  Beside rows = rows_beside(w);
  u32 row = lower_bound(rows.keys, 0u, rows.n, key);
  if (row < rows.n && rows.keys[row] == key) state = run_beside(b, rows, row, limits[i], state);
  put_found(state, i, found, weights, times);
}

// A query's rows in the batch.
struct Span {
  u32 lo, hi;
};

// As locate_neighbors in neighbors.cu, of candidates; span: the rows of each query.
extern "C" __global__ void __launch_bounds__(THREADS)
    locate_beside(const __grid_constant__ Store s, const __grid_constant__ Work w,
                  const u32* vertices, i64 n, i64* indptr, Cursor* begin, i64* before, Span* span,
                  u64* status, i64* answer, i64 ticket) {
  auto find = [&](i64 query, u32 u) {
    u64 first = edge_key(u, 0), end = edge_key(u, MARKER);
    Beside rows = rows_beside(w);
    u32 lo = lower_bound(rows.keys, 0u, rows.n, first);
    u32 hi = lower_bound(rows.keys, lo, rows.n, end);
    span[query] = {lo, hi};
    Located found = lo == hi ? slots_between(s, first, end) : counted_between(s, first, end);
    found.rows += hi - lo;
    return found;
  };
  locate_queries(vertices, n, indptr, begin, before, status, answer, ticket, find);
}

// Candidate `number` of a query: its key, and its state at place `limit`.
__device__ __forceinline__ State candidate(const Store& s, const Batch& b, const Beside& rows,
                                           const i64* row_before, Cursor begin, i64 before,
                                           Span own, i64 candidates, i64 number, i64 limit,
                                           u32& id) {
  // The first of its rows that does not stand before the candidate.
  u32 row = first_false(own.lo, own.hi,
                        [&](u32 r) { return i64(r - own.lo) + row_before[r] - before < number; });
  i64 offset = number - (row - own.lo);
  bool is_row = row < own.hi && row_before[row] - before == offset;
  State state = {false, 0, 0};
  u64 key = is_row ? rows.keys[row] : 0;
  bool again = row > own.lo && is_row && rows.keys[row - 1] == key;
  if (again) return state;
  if (offset < candidates - (own.hi - own.lo)) {
    Cursor at = slot_of(s, begin, before, offset);
    Slot slot = segment_at(s, at.rank);
    u64 held = key_at(s, slot, at.position);
    if (!is_row) {
      if (row > own.lo && rows.keys[row - 1] == held) return state;  // its run speaks for it
      key = held;
    }
    if (held == key) state = stored_at(s, slot, at.position);
  }
  id = key_dst(key);
  return is_row ? run_beside(b, rows, row, limit, state) : state;
}

// Of all candidates, whose queries are those of indptr, pack those that are present at their
// query's limit. packed[c]: how many candidates before c are present, for c up to their number. ids
// null: count only. Nothing if there are more than `room`. A thread a candidate that there is room
// for, and one more.
extern "C" __global__ void __launch_bounds__(THREADS)
    read_beside(const __grid_constant__ Store s, const __grid_constant__ Batch b,
                const __grid_constant__ Work w, const i64* row_before, const Span* span,
                const i64* limits, i64 n, const i64* indptr, const Cursor* begin,
                const i64* before, i64 room, i64* packed, u32* ids, Weight* weights, i64* times,
                u64* status) {
  i64 candidates = indptr[n];
  if (candidates > room) return;
  u32 tile = take_tile(status);
  i64 number = i64(tile) * blockDim.x + threadIdx.x;
  if (number - threadIdx.x > candidates) return;  // no tile that has candidates comes after it
  State state = {false, 0, 0};
  u32 id = 0;
  if (number < candidates) {
    i64 query = last_start(indptr, 0, n - 1, number), first = indptr[query];
    state = candidate(s, b, rows_beside(w), row_before, begin[query], before[query], span[query],
                      indptr[query + 1] - first, number - first, limits[query], id);
  }
  u64 to = grid_prefix<THREADS>(status, tile, state.present);
  if (number <= candidates) packed[number] = i64(to);
  if (!state.present || !ids) return;
  ids[to] = id;
  put_state(state, to, weights, times);
}

// ends[q]: how many of the candidates of the queries before q are present, for q up to n; and the
// host is told how many there were, and how many are present. If there is no room for the
// candidates, it is told only that. A thread a query, and one more.
extern "C" __global__ void __launch_bounds__(THREADS)
    end_present(i64 n, const i64* indptr, i64 room, const i64* packed, i64* ends, i64* answer,
                i64 ticket) {
  i64 query = thread_number(), rows = indptr[n];
  if (query > n) return;
  i64 present = rows > room ? 0 : packed[indptr[query]];
  ends[query] = present;
  if (query == n && ticket) tell(answer, ticket, rows, present, 0);
}
