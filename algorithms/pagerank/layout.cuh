// The rows that PageRank pulls along on a CUDA device: the transpose's, laid out by their lengths.
//
// Rows are the vertices alone, from the one of the most in-edges to those of none. An entry is the
// place of its vertex's share, or `rows`, where the share is 0. Three kinds of rows follow each
// other:
//   hubs, of more than PIECE entries, in pieces of as many, a warp a piece;
//   teams, of more than SHORT, eight lanes a row;
//   slices, the rest, 32 rows together, a lane a row, as long as the longest.
// The entries of a row of the first two kinds are side by side, filled up to a multiple of 4. In a
// slice the k-th entries of all rows are; of columns 0 to 3, 4 to 7 and so on, as long as there are
// four, the four entries of a row.
//
// Source of slices: Kreutzer, Hager, Wellein, Fehske and Bishop, "A unified sparse matrix data
// format for efficient general sparse matrix-vector multiply on modern processors with wide SIMD
// units", SIAM J. Sci. Comput. 36, 2014, arXiv 1307.6209 (SELL-C-sigma).
#pragma once
#include "lpma/cuda/types.cuh"

constexpr i64 PIECE = 512;
constexpr i64 SHORT = 32;

struct Span {
  i64 first, end;
};

struct Layout {
  i64 hubs, unsliced, rows;  // how many rows are hubs; hubs or teams; in all
  i64 pieces;
  const i64* starts;       // of rows that are not in slices, then of slices; and the end
  const i64* first_piece;  // of each hub; and the end
  const u32* hub;          // of each piece

  __device__ __forceinline__ i64 teams() const { return (unsliced - hubs + 3) / 4; }
  __device__ __forceinline__ i64 slices() const { return (rows - unsliced + 31) / 32; }
  __device__ __forceinline__ i64 task_of(i64 slice) const { return pieces + teams() + slice; }
  __device__ __forceinline__ i64 tasks() const { return task_of(slices()); }

  __device__ __forceinline__ Span row(i64 u) const { return {starts[u], starts[u + 1]}; }
  __device__ __forceinline__ Span slice(i64 i) const { return row(unsliced + i); }
  __device__ __forceinline__ Span piece(i64 i) const {
    u32 u = hub[i];
    i64 first = starts[u] + PIECE * (i - first_piece[u]);
    return {first, min(first + PIECE, starts[u + 1])};
  }
};

// A kernel's first parameters, and the Layout that they give: layout_cuda.py has them in one place.
#define LAYOUT                                                                               \
  i64 hubs, i64 unsliced, i64 rows, i64 pieces, const i64 *starts, const i64 *first_piece, \
      const u32 *hub
#define GIVEN_LAYOUT {hubs, unsliced, rows, pieces, starts, first_piece, hub}
