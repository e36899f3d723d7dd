// Numbering the edges of the simple view (cuda.py); a thread per entry.
#include "lpma/cuda/rows.cuh"

// The number of every entry's edge, in the list sorted by (src, dst): upper[u] is the number of
// the first edge from u to a larger id.
extern "C" __global__ void number_entries(const i64* indptr, const u32* indices, i64 n, i64 count,
                                          const i64* upper, i32* edge) {
  i64 u = row_of_entry(indptr, n, count);
  i64 i = thread_number();
  if (i >= count) return;
  i64 v = indices[i];
  if (v > u) {
    edge[i] = i32(upper[u + 1] - (indptr[u + 1] - i));
  } else {
    i64 place = lower_bound(indices, indptr[v], indptr[v + 1], u32(u));
    edge[i] = i32(upper[v + 1] - (indptr[v + 1] - place));
  }
}
