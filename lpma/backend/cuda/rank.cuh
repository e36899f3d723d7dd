// Sorting a small batch by the whole grid: tiles are sorted in shared memory, and then put together.
//
// Idea: a radix sort takes a pass for each eight bits of a key, and a pass is some 9 us of latency
// for 10^5 rows. Here only comparisons count. A block sorts a tile by merging runs of 4, 8, 16 … rows
// (merge.cuh). Up to RANKED_TILES tiles are put together in one step: a row's place among all is the
// sum of its places in the tiles, a lane searches each, and the sum takes a few shuffles. A grid has
// more threads than a small batch has rows, so most of these searches are under way at once. Their
// number grows with the rows times the tiles, so that more tiles are merged in pairs, step by step.
//
// All steps are stable: of equal keys the one of the earlier run, or tile, comes first. Rows without
// a key are NO_KEY, and end behind all others.
//
// Bytes: none that count; the keys are read from the L1 and the L2 cache.
//
// Requires: a cooperative launch; a report of zeros; shared memory for a Merging.
#pragma once
#include "lpma/backend/cuda/make_keys.cuh"
#include "lpma/backend/cuda/merge.cuh"
#include "lpma/cuda/grid.cuh"

constexpr u32 RANKED_TILES = 16;
constexpr int ABREAST_ROWS = 2;  // whose searches a lane has under way

// Make the keys of the tile that begins at row `first`. While its columns are on their way,
// meanwhile() is done.
template <class Meanwhile>
__device__ __forceinline__ void make_tile(const Batch& b, const Work& w, const Source& source,
                                          Merging& merging, u32 first, Meanwhile meanwhile) {
  u32 src[A_THREAD], dst[A_THREAD];
  int kind[A_THREAD];
#pragma unroll
  for (int j = 0; j < A_THREAD; ++j) {
    u32 at = first + j * THREADS + threadIdx.x;
    bool in = at < source.n;
    u32 row = source.lo + (source.direction == BOTH ? at >> 1 : at);
    kind[j] = in ? kind_of(b, row) : FIRST_QUERY;
    src[j] = in ? b.src[row] : 0;
    dst[j] = in ? b.dst[row] : 0;
  }
  meanwhile();
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
    rows += __syncthreads_count(key != NO_KEY);
    merging.word[i] = key;
    merging.place[i] = source.lo + (source.direction == BOTH ? at >> 1 : at);
  }
  if (threadIdx.x == 0) add_to(w, ROWS, rows);
  __syncthreads();
}

// Put a thread's rows in order.
__device__ __forceinline__ void sort_own(Taken& own) {
#pragma unroll
  for (int i = 1; i < A_THREAD; ++i)
#pragma unroll
    for (int j = i; j > 0; --j) {
      if (own.word[j - 1] <= own.word[j]) continue;
      u64 word = own.word[j];
      own.word[j] = own.word[j - 1];
      own.word[j - 1] = word;
      u32 place = own.place[j];
      own.place[j] = own.place[j - 1];
      own.place[j - 1] = place;
    }
}

// Sort the tiles, each for itself; the columns number `to` get them. Each block does meanwhile()
// once.
template <class Meanwhile>
__device__ __forceinline__ void sort_tiles(const Batch& b, const Work& w, const Source& source,
                                           Merging& merging, int to, Meanwhile meanwhile) {
  u32 at = A_THREAD * threadIdx.x;
  bool is_done = false;
  auto once = [&] {
    if (!is_done) meanwhile();
    is_done = true;
  };
  for (u32 first = blockIdx.x * TILE_ROWS; first < source.n; first += gridDim.x * TILE_ROWS) {
    __syncthreads();
    make_tile(b, w, source, merging, first, once);
    Taken own;
#pragma unroll
    for (int k = 0; k < A_THREAD; ++k)
      own.word[k] = merging.word[at + k], own.place[k] = merging.place[at + k];
    sort_own(own);
    u32 rows = min(TILE_ROWS, u32(source.n) - first);
    for (u32 run = A_THREAD; run < rows; run *= 2) {
      __syncthreads();
#pragma unroll
      for (int k = 0; k < A_THREAD; ++k)
        merging.word[at + k] = own.word[k], merging.place[at + k] = own.place[k];
      __syncthreads();
      u32 pair = at & ~(2 * run - 1);
      take_merged(merging, {pair, run}, {pair + run, run}, at - pair, own);
    }
#pragma unroll
    for (int k = 0; k < A_THREAD; ++k) {
      if (first + at + k >= source.n) continue;
      w.key[to][first + at + k] = own.word[k];
      w.place[to][first + at + k] = own.place[k];
    }
  }
  once();
}

// Put the rows of sorted tiles in order: a group of lanes a row, a lane a tile.
__device__ void rank_rows(const Work& w, u32 n) {
  u32 tiles = (n + TILE_ROWS - 1) / TILE_ROWS, group = 2u << (31 - __clz(tiles - 1));
  const u64* words = w.key[1];
  u32 tile = lane_id() & (group - 1), begin = tile * TILE_ROWS;
  u64 step = thread_count<THREADS>();
  for (u64 i = thread_number<THREADS>(); i - lane_id() < u64(n) * group; i += ABREAST_ROWS * step) {
    u32 row[ABREAST_ROWS], before[ABREAST_ROWS];
    u64 word[ABREAST_ROWS];
#pragma unroll
    for (int k = 0; k < ABREAST_ROWS; ++k) {
      row[k] = u32(min((i + k * step) / group, u64(n - 1)));
      word[k] = words[row[k]];
      before[k] = 0;
    }
    for (u32 by = TILE_ROWS; by; by /= 2)
#pragma unroll
      for (int k = 0; k < ABREAST_ROWS; ++k) {
        u32 at = begin + before[k] + by - 1;
        if (at >= n || before[k] + by > TILE_ROWS || tile >= tiles) continue;
        u64 there = words[at];
        if (there < word[k] || (there == word[k] && at < row[k])) before[k] += by;
      }
#pragma unroll
    for (int k = 0; k < ABREAST_ROWS; ++k) {
      for (u32 by = group / 2; by; by /= 2)
        before[k] += __shfl_xor_sync(ALL_LANES, before[k], by);
      if (tile || (i + k * step) / group >= n) continue;
      w.key[0][before[k]] = word[k];
      w.place[0][before[k]] = w.place[1][row[k]];
    }
  }
}

// Sort a batch. There is a barrier at its end. Each block does meanwhile() once.
template <class Meanwhile>
__device__ __forceinline__ void sort_by_rank(const Batch& b, const Work& w, const Source& source,
                                             char* shared, Meanwhile meanwhile) {
  Merging& merging = *(Merging*)shared;
  u32 n = source.n;
  bool ranks = n > TILE_ROWS && n <= RANKED_TILES * TILE_ROWS;
  int at = ranks;  // so that the rows end in the first columns
  if (!ranks)
    for (u32 run = TILE_ROWS; run < n; run *= 2) at = 1 - at;
  sort_tiles(b, w, source, merging, at, meanwhile);
  if (ranks) {
    grid_sync();
    rank_rows(w, n);
  } else {
    for (u32 run = TILE_ROWS; run < n; run *= 2, at = 1 - at) {
      grid_sync();
      merge_runs(w, n, run, at, merging);
    }
  }
  grid_sync();
}
