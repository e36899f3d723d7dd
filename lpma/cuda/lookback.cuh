// Prefix sums over a whole grid in one launch: a scan in each block, then a look back.
//
// Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016.
// A block takes a *tile* of the input. It publishes the tile's sum at once, and the prefix (the sum
// up to the tile's end) when it knows it; 32 tiles are looked back at together.
//
// Encoding: status[0] hands out tiles; status[1 + tile] is 0 until the tile's sum is known, then
// SUM | sum, then PREFIX | prefix.
//
// Memory order: a word says both what it is and its value, so the reader of a word needs nothing
// else that its writer wrote: relaxed order suffices, and there is no fence. A word is one aligned
// store of 8 bytes, which no reader sees half; `volatile` has each be written and read where it
// stands, from memory and not from a register. The bits of SUM and PREFIX only rise, by one writer.
//
// Progress: tiles are numbered in the order in which their blocks start, so that every tile looked
// back at belongs to a block that runs, and publishes its sum without waiting for anyone.
//
// Requires: `status` is u64[1 + tiles], all zero. Sums stay under 2^62.
#pragma once
#include "lpma/cuda/scan.cuh"

constexpr u64 SUM = 1ull << 62, PREFIX = 2ull << 62, VALUE = SUM - 1;

// The next tile, for the whole block.
__device__ __forceinline__ u32 take_tile(u64* status) {
  __shared__ u32 tile;
  if (threadIdx.x == 0) tile = atomicAdd((u32*)status, 1u);
  __syncthreads();
  return tile;
}

// The sum of what is before `tile`, whose own sum is `sum`; for one whole warp.
__device__ __forceinline__ u64 look_back(u64* status, u32 tile, u64 sum) {
  volatile u64* words = status + 1;
  u32 lane = lane_id();
  if (tile == 0) {
    if (lane == 0) words[0] = PREFIX | sum;
    return 0;
  }
  if (lane == 0) words[tile] = SUM | sum;
  u64 before = 0;
  for (i64 nearest = i64(tile) - 1;; nearest -= 32) {
    u64 word = PREFIX;  // before the first tile
    if (nearest >= lane)
      while ((word = words[nearest - lane]) == 0) {
      }
    u32 known = __ballot_sync(ALL_LANES, word >> 63);  // lanes that read a prefix
    u32 last = known ? __ffs(known) - 1 : 31;
    before += warp_sum(lane <= last ? word & VALUE : 0);
    if (known) break;
  }
  if (lane == 0) words[tile] = PREFIX | (before + sum);
  return before;
}

// The sum of `value` over all threads before this one, of this tile and of those before it. Called
// once, by all THREADS threads of the block.
template <int THREADS>
__device__ __forceinline__ u64 grid_prefix(u64* status, u32 tile, u64 value) {
  __shared__ u64 before_tile;
  u64 total, before = block_exclusive<THREADS>(value, total);
  if (warp_id() == 0) {
    u64 prefix = look_back(status, tile, total);
    if (lane_id() == 0) before_tile = prefix;
  }
  __syncthreads();
  return before_tile + before;
}
