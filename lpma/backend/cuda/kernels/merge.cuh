// Merging sorted runs of a batch's rows, by a block in shared memory.
//
// Source: Odeh, Green, Mwassi, Shmueli, Birk, "Merge Path", IPDPSW 2012.
//
// Idea: of what two runs come to, each thread takes A_THREAD rows. Where these begin in the two runs
// is found by a search.
//
// Merging is stable: of equal keys those of the left run come first.
#pragma once
#include "lpma/backend/cuda/kernels/work.cuh"
#include "lpma/cuda/search.cuh"

constexpr int A_THREAD = 2;
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
