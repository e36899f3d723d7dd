// What cooperative kernels share: the grid's barrier, sums and scans over a block and the grid.
//
// A kernel is launched with THREADS threads a block and no more blocks than the device holds at
// once, so that grid_sync() is a barrier of about a microsecond: rounds of a loop cost that, and
// no launch and no word to the host.
#pragma once
#include <cooperative_groups.h>

#include "lpma/backend/cuda/store.cuh"

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr u32 ALL_LANES = ~0u;

__device__ __forceinline__ void grid_sync() { cooperative_groups::this_grid().sync(); }

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ u64 thread_number() { return u64(blockIdx.x) * THREADS + threadIdx.x; }
__device__ __forceinline__ u64 thread_count() { return u64(gridDim.x) * THREADS; }

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

// Three counts summed at once: a batch's scans come in threes.
struct Sums {
  u32 a, b, c;
};

__device__ __forceinline__ Sums operator+(Sums x, Sums y) {
  return {x.a + y.a, x.b + y.b, x.c + y.c};
}

__device__ __forceinline__ Sums operator-(Sums x, Sums y) {
  return {x.a - y.a, x.b - y.b, x.c - y.c};
}

__device__ __forceinline__ u32 warp_inclusive(u32 x) {
  for (int by = 1; by < 32; by <<= 1) {
    u32 y = __shfl_up_sync(ALL_LANES, x, by);
    if (lane_id() >= by) x += y;
  }
  return x;
}

__device__ __forceinline__ Sums warp_inclusive(Sums x) {
  return {warp_inclusive(x.a), warp_inclusive(x.b), warp_inclusive(x.c)};
}

// The sum over the block's threads before this one; `total` gets that over all. All call it.
__device__ __forceinline__ Sums block_exclusive(Sums x, Sums& total) {
  __shared__ Sums of_warp[WARPS];
  Sums inclusive = warp_inclusive(x);
  __syncthreads();  // a former call's readers are done
  if (lane_id() == 31) of_warp[threadIdx.x / 32] = inclusive;
  __syncthreads();
  Sums before = {0, 0, 0};
  total = {0, 0, 0};
  for (int i = 0; i < WARPS; ++i) {
    if (i == threadIdx.x / 32) before = total;
    total = total + of_warp[i];
  }
  return before + inclusive - x;
}

// The sum of `of_block` over the blocks before this one. Called by whole blocks, after a barrier.
__device__ __forceinline__ Sums blocks_before(const Sums* of_block, Sums& grid_total) {
  Sums mine = {0, 0, 0}, all = {0, 0, 0};
  for (int i = threadIdx.x; i < gridDim.x; i += THREADS) {
    Sums x = of_block[i];
    all = all + x;
    if (i < blockIdx.x) mine = mine + x;
  }
  Sums before;
  block_exclusive(mine, before);
  block_exclusive(all, grid_total);
  return before;
}

// A scan over the grid, called by all of it: put(i, item, before) gets item i and the sum of the
// counts of those before it, for each i of 0 … n - 1. read(i) gives the item, both times that it
// is called: its counts, and with them what else `put` wants. Returns the sum over all.
//
// There is one barrier, between the two readings. REQUIRES another before of_block serves again.
template <class Read, class Put>
__device__ __forceinline__ Sums scan_grid(i64 n, Sums* of_block, Read read, Put put) {
  Share share = block_share(n);
  Sums sum = {0, 0, 0}, total, grid_total;
  for (i64 i = share.lo + threadIdx.x; i < share.hi; i += THREADS) sum = sum + read(i);
  block_exclusive(sum, total);
  if (threadIdx.x == 0) of_block[blockIdx.x] = total;
  grid_sync();
  Sums before = blocks_before(of_block, grid_total);
  for (i64 tile = share.lo; tile < share.hi; tile += THREADS) {
    i64 i = tile + threadIdx.x;
    decltype(read(i)) item = {};
    if (i < share.hi) item = read(i);
    Sums at = before + block_exclusive(item, total);
    before = before + total;
    if (i < share.hi) put(i, item, at);
  }
  return grid_total;
}

template <typename T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int by = 16; by; by >>= 1) x += __shfl_xor_sync(ALL_LANES, x, by);
  return x;
}

// Over all lanes, which all get it: one instruction from compute capability 8.0 on.
__device__ __forceinline__ u32 lanes_sum(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(ALL_LANES, x);
#else
  return warp_sum(x);
#endif
}

__device__ __forceinline__ u32 lanes_or(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(ALL_LANES, x);
#else
  for (int by = 16; by; by >>= 1) x |= __shfl_xor_sync(ALL_LANES, x, by);
  return x;
#endif
}
