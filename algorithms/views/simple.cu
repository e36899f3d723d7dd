// Dropping entries from rows: which are kept, and gathering them.
//
// Idea: every kernel that chooses writes keep[i], 0 or 1, for each entry. The running sums of
// `keep` are then the places of what is kept.
#include "lpma/cuda/rows.cuh"

// A thread a row, which is sorted: whether row u contains u.
extern "C" __global__ void find_loops(const i64* indptr, const u32* indices, i64 n, bool* looped) {
  i64 u = thread_number();
  if (u >= n) return;
  i64 end = indptr[u + 1], at = lower_bound(indices, indptr[u], end, u32(u));
  looped[u] = at < end && indices[at] == u32(u);
}

// Keep the entries that are no loops.
extern "C" __global__ void drop_loops(const i64* indptr, const u32* indices, i64 n, i64 m,
                                      u8* keep) {
  i64 u = row_of_entry(indptr, n, m);
  i64 i = thread_number();
  if (i < m) keep[i] = indices[i] != u;
}

// Keep the entries that `is_entry` selects in the rows that `is_row` selects.
extern "C" __global__ void both_inside(const i64* indptr, const u32* indices, i64 n, i64 m,
                                       const bool* is_row, const bool* is_entry, u8* keep) {
  i64 u = row_of_entry(indptr, n, m);
  i64 i = thread_number();
  if (i < m) keep[i] = is_row[u] && is_entry[indices[i]];
}

// kept[place[i]] = values[i] where keep[i].
extern "C" __global__ void gather_kept(const u8* keep, const i64* place, const u32* values,
                                       i64 count, u32* kept) {
  i64 i = thread_number();
  if (i < count && keep[i]) kept[place[i]] = values[i];
}
