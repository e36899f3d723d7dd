// The transpose's rows laid out for PageRank: layout.cuh says how.
#include "algorithms/pagerank/layout.cuh"

constexpr u64 NONE = ~0ull;  // a row that is no vertex comes last

// keys[n]: the fewer entries, the larger; then by row.
extern "C" __global__ void order_keys(const i64* indptr, const bool* is_vertex, i64 n, u64* keys) {
  i64 u = thread_number();
  if (u < n) keys[u] = is_vertex[u] ? u64(~u32(indptr[u + 1] - indptr[u])) << 32 | u : NONE;
}

// The rows in their order, and the place of each vertex in it.
extern "C" __global__ void number_rows(const u64* keys, i64 rows, u32* vertex, u32* place_of) {
  i64 i = thread_number();
  if (i >= rows) return;
  vertex[i] = u32(keys[i]);
  place_of[u32(keys[i])] = i;
}

// size[i]: the entries of row i, of `unsliced`, filled up; then of slices. pieces[i]: of each hub.
extern "C" __global__ void measure(const u64* keys, i64 hubs, i64 unsliced, i64 rows, i64* size,
                                   i64* pieces) {
  i64 i = thread_number(), slice = i - unsliced;
  if (slice >= (rows - unsliced + 31) / 32) return;
  i64 u = slice < 0 ? i : unsliced + 32 * slice;
  i64 length = ~u32(keys[u] >> 32);
  size[i] = slice < 0 ? (length + 3) / 4 * 4 : 32 * length;
  if (i < hubs) pieces[i] = (length + PIECE - 1) / PIECE;
}

// Of each row: the place of its vertex's share, and 1 / the weight that leaves it. by_degree: leaving
// is not read.
extern "C" __global__ void describe_rows(const u32* vertex, i64 rows, const u32* place_of,
                                         const i64* indptr, const double* leaving, i64 by_degree,
                                         u32* place, double* inverse) {
  i64 i = thread_number();
  if (i >= rows) return;
  u32 u = vertex[i];
  double w = by_degree ? double(indptr[u + 1] - indptr[u]) : leaving[u];
  place[i] = place_of[u];
  inverse[i] = w > 0 ? 1 / w : 0;
}

// Entries of the transpose brought to their places: a warp a task, as in PageRank itself.
struct Copy {
  const i64* indptr;  // of the transpose
  const u32* indices;
  const double* weights;
  const u32* place_of;
  u32* places;
  double* values;
  u32 nowhere;
  bool is_weighted;

  // Entry k of a vertex's row, which has `length`.
  __device__ __forceinline__ void entry(i64 to, i64 from, i64 k, i64 length) const {
    bool is_there = k < length;
    places[to] = is_there ? place_of[indices[from + k]] : nowhere;
    if (is_weighted) values[to] = is_there ? weights[from + k] : 0;
  }
};

extern "C" __global__ void fill(LAYOUT, const u32* vertex, const i64* indptr,
                                const u32* indices, const double* weights, i64 is_weighted,
                                const u32* place_of, u32* places, double* values) {
  const Layout layout = GIVEN_LAYOUT;
  Copy copy = {indptr, indices, weights, place_of, places, values, u32(layout.rows), is_weighted != 0};
  i64 task = warp_number(), middling = layout.unsliced - layout.hubs;
  if (task < layout.pieces + middling) {
    bool is_piece = task < layout.pieces;
    i64 u = is_piece ? layout.hub[task] : layout.hubs + task - layout.pieces;
    Span span = is_piece ? layout.piece(task) : layout.row(u);
    i64 start = layout.row(u).first, from = indptr[vertex[u]];
    i64 length = indptr[vertex[u] + 1] - from;
    for (i64 e = span.first + lane_id(); e < span.end; e += 32)
      copy.entry(e, from, e - start, length);
    return;
  }
  i64 slice = task - layout.pieces - middling, u = layout.unsliced + 32 * slice + lane_id();
  if (slice >= layout.slices()) return;
  Span span = layout.slice(slice);
  i64 width = (span.end - span.first) / 32, together = width / 4 * 4;
  i64 from = u < layout.rows ? indptr[vertex[u]] : 0;
  i64 length = u < layout.rows ? indptr[vertex[u] + 1] - from : 0;
  for (i64 k = 0; k < width; ++k) {
    i64 at = k < together ? k / 4 * 128 + 4 * lane_id() + k % 4 : 32 * k + lane_id();
    copy.entry(span.first + at, from, k, length);
  }
}
