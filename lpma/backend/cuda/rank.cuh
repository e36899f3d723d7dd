// Sorting up to RANKED_ROWS rows by the whole grid, with two barriers: tiles are sorted in shared
// memory, and then each row finds its place among the tiles.
//
// Idea: a radix sort takes a pass for each eight bits of a key, and a pass is some 4 us of latency
// whatever there is to sort. Here only comparisons count. A block sorts a tile by merging runs of 1,
// 2, 4 … rows, each row finding its place in the other run by a search. Then a row's place among all
// is the sum of its places in the tiles: a lane searches each, and the sum takes a few shuffles. A
// grid has more threads than a small batch has rows, so most of these searches are under way at once.
//
// Both steps are stable: of equal keys the one of the earlier run, or tile, comes first. Rows without
// a key are NO_KEY, and end behind all others.
//
// Bytes: none that count; the keys are read from the L1 cache. The work grows with the rows times the
// tiles: beyond RANKED_ROWS a radix sort (sort.cu) is faster.
//
// Requires: a cooperative launch; a report of zeros; shared memory for a Merging.
#pragma once
#include "lpma/backend/cuda/make_keys.cuh"
#include "lpma/cuda/grid.cuh"

constexpr u32 FEW_ROWS = 4096, RANKED_ROWS = 32 * 1024;
constexpr u32 SMALL_TILE = THREADS, LARGE_TILE = 4 * THREADS;  // the first up to FEW_ROWS
constexpr int A_THREAD = LARGE_TILE / THREADS;

// Two buffers, between which merging goes to and fro.
struct Merging {
  u64 word[2][LARGE_TILE];
  u32 place[2][LARGE_TILE];
};

// Make the keys of a tile, in the first buffer.
__device__ void make_tile(const Batch& b, const Work& w, const Source& source, Merging& merging,
                          u32 first, u32 size) {
  u32 src[A_THREAD], dst[A_THREAD];
  int kind[A_THREAD];
#pragma unroll
  for (int j = 0; j < A_THREAD; ++j) {
    u32 i = j * THREADS + threadIdx.x, at = first + i;
    bool in = i < size && at < source.n;
    u32 row = source.lo + (source.direction == BOTH ? at >> 1 : at);
    kind[j] = in ? kind_of(b, row) : FIRST_QUERY;
    src[j] = in ? b.src[row] : 0;
    dst[j] = in ? b.dst[row] : 0;
  }
  u32 rows = 0;
#pragma unroll
  for (int j = 0; j < A_THREAD; ++j) {
    u32 i = j * THREADS + threadIdx.x, at = first + i;
    bool second = source.direction == BOTH && (at & 1);
    if (!source.checked && !second && at < source.n) {
      Bad bad = bad_row(kind[j], src[j], dst[j]);
      if (bad.kind) add_to(w, BAD_KIND, 1);
      if (bad.vertex) add_to(w, BAD_VERTEX, 1);
      if (bad.hops) add_to(w, BAD_HOPS, 1);
    }
    bool back = second || source.direction == REVERSE;
    u64 key = key_of(src[j], dst[j], kind[j], back, second);
    rows += __syncthreads_count(i < size && key != NO_KEY);
    if (i >= size) continue;
    merging.word[0][i] = key;
    merging.place[0][i] = source.lo + (source.direction == BOTH ? at >> 1 : at);
  }
  if (threadIdx.x == 0) add_to(w, ROWS, rows);
}

// Merge pairs of runs of `run` rows, from one buffer to the other.
__device__ __forceinline__ void merge_runs(Merging& merging, int from, u32 run, u32 size) {
  const u64* words = merging.word[from];
  u64 word[A_THREAD];
  u32 before[A_THREAD];  // rows of the other run that come before
#pragma unroll
  for (int j = 0; j < A_THREAD; ++j) {
    u32 i = j * THREADS + threadIdx.x;
    if (i < size) word[j] = words[i];
    before[j] = 0;
  }
  for (u32 step = run; step; step /= 2)
#pragma unroll
    for (int j = 0; j < A_THREAD; ++j) {
      u32 i = j * THREADS + threadIdx.x, other = (i & ~(run - 1)) ^ run, next = before[j] + step;
      if (i >= size || next > run) continue;
      u64 there = words[other + next - 1];
      if (there < word[j] || (there == word[j] && (i & run))) before[j] = next;
    }
#pragma unroll
  for (int j = 0; j < A_THREAD; ++j) {
    u32 i = j * THREADS + threadIdx.x;
    if (i >= size) continue;
    u32 to = (i & ~run) + before[j];
    merging.word[1 - from][to] = word[j];
    merging.place[1 - from][to] = merging.place[from][i];
  }
}

// Sort the tiles, each for itself; the columns number `to` get them.
__device__ void sort_tiles(const Batch& b, const Work& w, const Source& source, Merging& merging,
                           u32 size, int to) {
  for (u32 first = blockIdx.x * size; first < source.n; first += gridDim.x * size) {
    __syncthreads();
    make_tile(b, w, source, merging, first, size);
    int from = 0;
    for (u32 run = 1; run < size; run *= 2) {
      __syncthreads();
      merge_runs(merging, from, run, size);
      from = 1 - from;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < size && first + i < source.n; i += THREADS) {
      w.key[to][first + i] = merging.word[from][i];
      w.place[to][first + i] = merging.place[from][i];
    }
  }
}

// Put the rows of sorted tiles in order: a group of lanes a row, a lane a tile.
__device__ void rank_rows(const Work& w, u32 n, u32 size) {
  u32 tiles = (n + size - 1) / size, group = tiles > 1 ? 2u << (31 - __clz(tiles - 1)) : 1;
  const u64* words = w.key[1];
  u32 tile = lane_id() & (group - 1);
  for (u64 i = thread_number<THREADS>(); i - lane_id() < u64(n) * group;
       i += thread_count<THREADS>()) {
    u32 row = min(u32(i / group), n - 1), own = row / size, before = 0;
    u64 word = words[row];
    if (tile < tiles) {
      u32 lo = tile * size, hi = min(lo + size, n);
      if (tile == own) hi = lo = row;
      u32 end = first_false(lo, hi, [&](u32 at) {
        return words[at] < word || (words[at] == word && tile < own);
      });
      before = end - tile * size;
    }
    for (u32 by = group / 2; by; by /= 2) before += __shfl_xor_sync(ALL_LANES, before, by);
    if (tile || i / group >= n) continue;
    w.key[0][before] = word;
    w.place[0][before] = w.place[1][row];
  }
}

// Sort a batch. There is a barrier at its end.
__device__ void sort_by_rank(const Batch& b, const Work& w, const Source& source, char* shared) {
  u32 size = source.n <= FEW_ROWS ? SMALL_TILE : LARGE_TILE;
  bool is_one = source.n <= size;
  sort_tiles(b, w, source, *(Merging*)shared, size, is_one ? 0 : 1);
  grid_sync();
  if (is_one) return;
  rank_rows(w, source.n, size);
  grid_sync();
}
