// Sorting a small batch by the whole grid: tiles are sorted in shared memory, and then put together.
//
// Idea: a radix sort takes a pass for each eight bits of a key, and a pass is some 9 us of latency
// for 10^5 rows. Here only comparisons count. A block sorts a tile by merging runs of 2, 4, 8 … rows
// (merge.cuh). A row's place among several tiles is the sum of its places in each, which are searched
// for side by side. Up to RANKED_TILES tiles are put together in one step, by a lane a row and tile:
// a grid has more threads than a small batch has rows, so most of these searches are under way at
// once. Of more tiles, JOINED_TILES at a time become one run, and then all runs one.
//
// All steps are stable: of equal keys the one of the earlier run, or tile, comes first. Rows without
// a key are NO_KEY, and end behind all others.
//
// Bytes: none that count; the keys are read from the L1 and the L2 cache.
//
// Requires: a cooperative launch; a report of zeros; shared memory for a Merging.
#pragma once
#include "lpma/backend/cuda/kernels/make_keys.cuh"
#include "lpma/backend/cuda/kernels/merge.cuh"
#include "lpma/cuda/grid.cuh"

constexpr u32 RANKED_TILES = 32;  // at most, since a lane takes one
constexpr int ABREAST_ROWS = 2;  // whose searches a lane has under way
constexpr u32 JOINED_TILES = 16, ALL_ROWS = 1u << 31;
constexpr int ABREAST_RUNS = 4;  // in which a lane searches side by side

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
    u32 row = source.direction == BOTH ? at >> 1 : at;
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
    if (!source.checked && !second && at < source.n)
      count_if_bad(kind[j], src[j], dst[j], [&](int word) { add_to(w, word, 1); });
    bool back = second || source.direction == REVERSE;
    u64 key = key_of(src[j], dst[j], kind[j], back, second);
    rows += __syncthreads_count(key != NO_KEY);
    merging.word[i] = key;
    merging.place[i] = source.direction == BOTH ? at >> 1 : at;
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

// Find how many of `size` sorted rows from `place` on are below a limit, for several searches at once:
// each place ends as the row behind them. No search waits for another, and a step of one is a read, a
// comparison and an addition, of which a grid of searches has enough to do. A search of no rows reads
// one all the same. widest: the largest size.
template <int SEARCHES>
__device__ __forceinline__ void search_abreast(const u64* words, u32 (&place)[SEARCHES],
                                               u32 (&size)[SEARCHES],
                                               const u64 (&limit)[SEARCHES], u32 widest) {
  for (; widest > 1; widest -= widest / 2)
#pragma unroll
    for (int k = 0; k < SEARCHES; ++k) {
      u32 half = size[k] / 2;
      if (words[place[k] + half] < limit[k]) place[k] += half;
      size[k] -= half;
    }
#pragma unroll
  for (int k = 0; k < SEARCHES; ++k)
    if (words[place[k]] < limit[k] && size[k]) ++place[k];
}

// The limit below which the rows of run number `run` come before a row of this word in run number
// `own`: those of earlier runs come before equal ones.
__device__ __forceinline__ u64 limit_in(u32 run, u32 own, u64 word) { return word + (run < own); }

// Put the rows of sorted tiles in order: a group of lanes a row, a lane a tile.
__device__ void rank_rows(const Work& w, u32 n) {
  u32 tiles = (n + TILE_ROWS - 1) / TILE_ROWS, group = 2u << (31 - __clz(tiles - 1));
  const u64* words = w.key[1];
  u32 tile = lane_id() & (group - 1), begin = min(tile * TILE_ROWS, n);
  u64 step = thread_count<THREADS>();
  for (u64 i = thread_number<THREADS>(); i - lane_id() < u64(n) * group; i += ABREAST_ROWS * step) {
    u32 row[ABREAST_ROWS], place[ABREAST_ROWS], size[ABREAST_ROWS];
    u64 word[ABREAST_ROWS], limit[ABREAST_ROWS];
#pragma unroll
    for (int k = 0; k < ABREAST_ROWS; ++k) {
      row[k] = u32(min((i + k * step) / group, u64(n - 1)));
      u32 own = row[k] / TILE_ROWS;
      word[k] = words[row[k]];
      limit[k] = limit_in(tile, own, word[k]);
      place[k] = tile == own ? row[k] : begin;
      size[k] = tile == own ? 0 : min(TILE_ROWS, n - begin);
    }
    search_abreast<ABREAST_ROWS>(words, place, size, limit, TILE_ROWS);
#pragma unroll
    for (int k = 0; k < ABREAST_ROWS; ++k) {
      u32 before = place[k] - begin;
      for (u32 by = group / 2; by; by /= 2) before += __shfl_xor_sync(ALL_LANES, before, by);
      if (tile || (i + k * step) / group >= n) continue;
      w.key[0][before] = word[k];
      w.place[0][before] = w.place[1][row[k]];
    }
  }
}

// Join the sorted runs of `run` rows in groups of `group` rows, at most 32 runs, to a run each, from
// columns number `from` to the others; run and group are powers of two. A warp takes 32 rows beside
// each other, of one run. Between which places of each other run they all belong is found by a lane a
// run; then each lane searches there for its own row.
__device__ void join_runs(const Work& w, u32 n, u32 run, u32 group, int from) {
  const u64* words = w.key[from];
  u32 lane = lane_id();
  for (u64 next = thread_number<THREADS>(); next - lane < n; next += thread_count<THREADS>()) {
    u32 row = u32(next), base = row - lane;
    u32 first = base & ~(group - 1), end = min(first + group, n), runs = (end - first + run - 1) / run;
    u32 mine = (base - first) / run, begin = min(first + lane * run, end);
    u64 own = words[min(row, n - 1)];
    u64 ends[2] = {limit_in(lane, mine, __shfl_sync(ALL_LANES, own, 0)),
                   limit_in(lane, mine, __shfl_sync(ALL_LANES, own, 31))};
    u32 there = lane == mine ? 0 : min(run, end - begin);
    u32 bound[2] = {begin, begin}, left[2] = {there, there}, to = first;
    search_abreast<2>(words, bound, left, ends, run);
    for (u32 r = 0; r < runs; r += ABREAST_RUNS) {
      u32 place[ABREAST_RUNS], size[ABREAST_RUNS], widest = 0;
      u64 limit[ABREAST_RUNS];
#pragma unroll
      for (int k = 0; k < ABREAST_RUNS; ++k) {
        place[k] = __shfl_sync(ALL_LANES, bound[0], (r + k) & 31);
        size[k] = __shfl_sync(ALL_LANES, bound[1], (r + k) & 31) - place[k];
        limit[k] = limit_in(r + k, mine, own);
        widest = max(widest, size[k]);
      }
      search_abreast<ABREAST_RUNS>(words, place, size, limit, widest);
#pragma unroll
      for (int k = 0; k < ABREAST_RUNS; ++k)
        if (r + k < runs) to += (r + k == mine ? row : place[k]) - (first + (r + k) * run);
    }
    if (row >= n) continue;
    w.key[1 - from][to] = own;
    w.place[1 - from][to] = w.place[from][row];
  }
}

// Sort a batch. There is a barrier at its end. Each block does meanwhile() once while its first keys
// are on their way, and at_last() before that barrier.
template <class Meanwhile, class AtLast>
__device__ __forceinline__ void sort_by_rank(const Batch& b, const Work& w, const Source& source,
                                             char* shared, Meanwhile meanwhile, AtLast at_last) {
  Merging& merging = *(Merging*)shared;
  u32 n = source.n;
  if (n <= TILE_ROWS) {
    sort_tiles(b, w, source, merging, 0, meanwhile);
  } else if (n <= RANKED_TILES * TILE_ROWS) {
    sort_tiles(b, w, source, merging, 1, meanwhile);
    grid_sync();
    rank_rows(w, n);
  } else {
    sort_tiles(b, w, source, merging, 0, meanwhile);
    grid_sync();
    join_runs(w, n, TILE_ROWS, JOINED_TILES * TILE_ROWS, 0);
    grid_sync();
    join_runs(w, n, JOINED_TILES * TILE_ROWS, ALL_ROWS, 1);
  }
  at_last();
  grid_sync();
}
