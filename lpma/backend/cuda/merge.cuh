// Merging sorted runs of a batch's rows: by a block in shared memory, and by the whole grid.
//
// Source: Odeh, Green, Mwassi, Shmueli, Birk, "Merge Path", IPDPSW 2012.
//
// Idea: of what two runs come to, each thread takes A_THREAD rows, and each block TILE_ROWS. Where
// these begin in the two runs is found by a search; a warp that searches in global memory looks at 32
// places at a time, so that a run of 10^5 rows takes it four reads. A block then has its part of both
// runs in shared memory.
//
// Merging is stable: of equal keys those of the left run come first.
#pragma once
#include "lpma/backend/cuda/work.cuh"
#include "lpma/cuda/search.cuh"

constexpr int A_THREAD = 4;
constexpr u32 TILE_ROWS = A_THREAD * THREADS;

struct Merging {
  u64 word[TILE_ROWS];
  u32 place[TILE_ROWS];
};

// A thread's rows.
struct Taken {
  u64 word[A_THREAD];
  u32 place[A_THREAD];
};

// A sorted run: its first row, and how many it has.
struct Sorted {
  u32 first, rows;
};

// Whether, of what two runs come to, the first `before` rows have more than `i` of the left one.
__device__ __forceinline__ bool takes_more(const u64* words, Sorted left, Sorted right, u32 before,
                                           u32 i) {
  return words[left.first + i] <= words[right.first + before - 1 - i];
}

// Take a thread's rows of what two runs in shared memory come to; `before` rows come before them.
__device__ __forceinline__ void take_merged(const Merging& merging, Sorted left, Sorted right,
                                            u32 before, Taken& own) {
  u32 total = left.rows + right.rows;
  if (before >= total) return;
  u32 i = first_false(before > right.rows ? before - right.rows : 0u, min(before, left.rows),
                      [&](u32 at) { return takes_more(merging.word, left, right, before, at); });
  u32 j = before - i;
#pragma unroll
  for (int k = 0; k < A_THREAD; ++k) {
    if (before + k >= total) break;
    u32 of_left = left.first + i, of_right = right.first + j;
    bool takes_left =
        j >= right.rows || (i < left.rows && merging.word[of_left] <= merging.word[of_right]);
    u32 at = takes_left ? of_left : of_right;
    own.word[k] = merging.word[at];
    own.place[k] = merging.place[at];
    if (takes_left)
      ++i;
    else
      ++j;
  }
}

// How many rows of the left run are among the first `before` of what two runs in global memory come
// to; for one whole warp.
__device__ __forceinline__ u32 rows_of_left(const u64* words, Sorted left, Sorted right, u32 before) {
  u32 low = before > right.rows ? before - right.rows : 0, high = min(before, left.rows);
  while (low < high) {
    u32 step = (high - low + 31) / 32, at = low + lane_id() * step;
    bool more = at < high && takes_more(words, left, right, before, at);
    u32 count = __popc(__ballot_sync(ALL_LANES, more));
    if (count == 0) return low;
    high = min(high, low + count * step);
    low += (count - 1) * step + 1;
  }
  return low;
}

// Merge pairs of runs of `run` rows, a multiple of TILE_ROWS, from columns number `from` to the
// others; by the whole grid.
__device__ void merge_runs(const Work& w, u32 n, u32 run, int from, Merging& merging) {
  __shared__ u32 cut[2];
  const u64* words = w.key[from];
  const u32* places = w.place[from];
  for (u32 first = blockIdx.x * TILE_ROWS; first < n; first += gridDim.x * TILE_ROWS) {
    u32 pair = first & ~(2 * run - 1), there = min(2 * run, n - pair);
    Sorted left = {pair, min(run, there)}, right = {pair + left.rows, there - left.rows};
    u32 low = first - pair, high = min(low + TILE_ROWS, there);
    if (warp_id() < 2) {
      u32 of_left = rows_of_left(words, left, right, warp_id() ? high : low);
      if (lane_id() == 0) cut[warp_id()] = of_left;
    }
    __syncthreads();
    Sorted mine = {0, cut[1] - cut[0]}, other = {mine.rows, high - low - mine.rows};
    for (u32 i = threadIdx.x; i < high - low; i += THREADS) {
      u32 at = i < mine.rows ? left.first + cut[0] + i
                             : right.first + (low - cut[0]) + (i - mine.rows);
      merging.word[i] = words[at];
      merging.place[i] = places[at];
    }
    __syncthreads();
    Taken own;
    u32 before = A_THREAD * threadIdx.x;
    take_merged(merging, mine, other, before, own);
#pragma unroll
    for (int k = 0; k < A_THREAD; ++k) {
      if (before + k >= high - low) break;
      w.key[1 - from][first + before + k] = own.word[k];
      w.place[1 - from][first + before + k] = own.place[k];
    }
    __syncthreads();
  }
}
