// Numbering the edges of the simple view (algorithms/truss/cuda.py). A thread an entry.
#include "lpma/cuda/rows.cuh"

// The number of every entry's edge in the list sorted by (src, dst). upper[u]: the number of the
// first edge from u to a larger id.
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

// The row of every slot of the ranked view (algorithms/triangles/ranked.py).
extern "C" __global__ void rows_of_slots(const i64* indptr, i64 n, i64 m, u32* row) {
  i64 u = row_of_entry(indptr, n, m);
  i64 slot = thread_number();
  if (slot < m) row[slot] = u32(u);
}

// From the ranked view both directions of its edges, by ranks: a row holds its smaller neighbours,
// and then those in whose rows it is.
extern "C" __global__ void join_ranked(const i64* indptr, const u32* indices,
                                       const i64* in_indptr, const i32* in_slot, i64 m,
                                       const u32* row, u32* joined, i32* edge) {
  i64 i = thread_number();
  if (i >= m) return;
  i64 down = in_indptr[row[i]] + i;
  joined[down] = indices[i];
  edge[down] = i32(i);
  i32 slot = in_slot[i];
  i64 up = indptr[i64(indices[slot]) + 1] + i;
  joined[up] = row[slot];
  edge[up] = slot;
}
