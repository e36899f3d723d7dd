// Scans over the grid for the kernels of a batch: three counts at a time, with one barrier.
//
// Idea: each block takes a contiguous share of the items and reads it twice. The first reading
// gives the share's sum, which the block publishes; after a barrier over the grid, the second
// reading hands each item the sum of all that comes before it. Nothing is kept in between.
//
// Requires: a cooperative launch with blocks of THREADS threads.
#pragma once
#include "lpma/backend/cuda/work.cuh"
#include "lpma/cuda/grid.cuh"
#include "lpma/cuda/scan.cuh"

// The contiguous share of 0 … n - 1 that a block takes, in whole tiles of THREADS.
struct Share {
  i64 lo, hi;
};

__device__ __forceinline__ Share block_share(i64 n) {
  i64 tiles = (n + THREADS - 1) / THREADS;
  i64 each = (tiles + gridDim.x - 1) / gridDim.x;
  i64 lo = min(i64(blockIdx.x) * each * THREADS, n);
  return {lo, min(lo + each * THREADS, n)};
}

__device__ __forceinline__ Sums operator+(Sums x, Sums y) {
  return {x.a + y.a, x.b + y.b, x.c + y.c};
}

__device__ __forceinline__ Sums operator-(Sums x, Sums y) {
  return {x.a - y.a, x.b - y.b, x.c - y.c};
}

// What `block_exclusive` of scan.cuh needs of a type beside its operators.
__device__ __forceinline__ Sums warp_inclusive(Sums x) {
  return {warp_inclusive(x.a), warp_inclusive(x.b), warp_inclusive(x.c)};
}

// The sum of `of_block` over the blocks before this one. Called by whole blocks, after a barrier
// over the grid; of_block is read from global memory, where that barrier made it visible.
__device__ __forceinline__ Sums blocks_before(const Sums* of_block, Sums& grid_total) {
  Sums mine = {0, 0, 0}, all = {0, 0, 0};
  for (int i = threadIdx.x; i < gridDim.x; i += THREADS) {
    Sums x = of_block[i];
    all = all + x;
    if (i < blockIdx.x) mine = mine + x;
  }
  Sums before;
  block_exclusive<THREADS>(mine, before);
  block_exclusive<THREADS>(all, grid_total);
  return before;
}

// A scan over items 0 … n - 1, called by the whole grid. put(i, item, before) gets item i and the
// sum of the counts of all items before it. read(i) gives the item, its counts and whatever else
// `put` wants, and is called twice for each. Returns the sum over all items.
//
// There is one barrier, between the two readings. REQUIRES: another barrier before `of_block` is
// written again.
template <class Read, class Put>
__device__ __forceinline__ Sums scan_grid(i64 n, Sums* of_block, Read read, Put put) {
  Share share = block_share(n);
  Sums sum = {0, 0, 0}, total, grid_total;
  for (i64 i = share.lo + threadIdx.x; i < share.hi; i += THREADS) sum = sum + read(i);
  block_exclusive<THREADS>(sum, total);
  if (threadIdx.x == 0) of_block[blockIdx.x] = total;
  grid_sync();
  Sums before = blocks_before(of_block, grid_total);
  for (i64 tile = share.lo; tile < share.hi; tile += THREADS) {
    i64 i = tile + threadIdx.x;
    decltype(read(i)) item = {};
    if (i < share.hi) item = read(i);
    Sums at = before + block_exclusive<THREADS, Sums>(item, total);
    before = before + total;
    if (i < share.hi) put(i, item, at);
  }
  return grid_total;
}
