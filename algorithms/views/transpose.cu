// The transpose of a CSR: a stable radix sort of its entries by target, eight bits a pass.
//
// Source: Adinets and Merrill, "Onesweep: a faster least significant digit radix sort for GPUs",
// 2022. The digits of all passes are counted beforehand. A pass then reads and writes every entry
// once: a block ranks a tile of entries, learns from the tiles before it how many entries of each
// digit they have, and writes its own behind them.
//
// Idea: only the bits of targets are sorted. The entries of a CSR stand in the order of their
// sources, and the sort is stable, so rows come out sorted. The first pass reads the rows as they
// are; the last one writes sources and targets apart.
//
// Ranks: a warp has consecutive entries of the tile. Lanes of equal digits find each other by eight
// ballots, and their number is added to the warp's own count of the digit.
//
// Encoding: a pair is target << 32 | source. Status words are those of lpma/cuda/lookback.cuh, one
// for each tile and digit.
//
// Requires: counts and status zero; whole warps.
#include "lpma/cuda/lookback.cuh"
#include "lpma/cuda/rows.cuh"

constexpr i64 FEW = 16;  // empty rows in a row
constexpr u32 DIGITS = 256, DIGIT_BITS = 8, MOST_PASSES = 4;
constexpr u32 BLOCK = 512, EACH = 12, TILE = BLOCK * EACH, WARPS = BLOCK / 32;  // transpose_cuda.py

__device__ __forceinline__ u32 digit_of(u64 pair, u32 shift) {
  return u32(pair >> 32) >> shift & (DIGITS - 1);
}

// counts: u64[passes][DIGITS].
extern "C" __global__ void count_digits(const u32* indices, i64 m, i64 passes, u64* counts) {
  __shared__ u32 own[MOST_PASSES * DIGITS];
  u32 words = u32(passes) * DIGITS;
  for (u32 i = threadIdx.x; i < words; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (i64 i = thread_number(); i < m; i += thread_count()) {
    u32 v = indices[i];
    for (u32 pass = 0; pass < passes; ++pass)
      atomicAdd(own + pass * DIGITS + (v >> pass * DIGIT_BITS & (DIGITS - 1)), 1u);
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < words; i += blockDim.x)
    if (own[i]) atomicAdd(counts + i, u64(own[i]));
}

// The entries of a thread: entry k is number 32 k + lane of its warp's.
struct Entries {
  u64 pair[EACH];
  u32 rank[EACH];
};

struct Graph {
  const i64* indptr;
  const u32* indices;
  i64 n, m;
};

// What a block needs while it sorts a tile. The pairs take the place of the warps' counts.
struct Pool {
  union {
    u64 pair[TILE];
    u32 of_warp[WARPS][DIGITS];
  };
  u32 start[DIGITS];   // of each digit in the tile
  i64 offset[DIGITS];  // from there to where it goes
};

// Read the entries of the graph as pairs.
__device__ __forceinline__ void read_rows(const Graph& g, i64 tile_first, i64 first, i64 end,
                                          Entries& own) {
  auto [row, last_row] = rows_of_block(g.indptr, g.n, tile_first, end - 1);
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) {
    i64 i = first + 32 * k;
    if (i >= end) break;
    row = last_start(g.indptr, row, last_row, i);
    own.pair[k] = u64(g.indices[i]) << 32 | u32(row);
  }
}

// The lanes among `present` that have this lane's digit.
__device__ __forceinline__ u32 peers_of(u32 present, u32 digit) {
#pragma unroll
  for (u32 bit = 0; bit < DIGIT_BITS; ++bit) {
    u32 set = __ballot_sync(ALL_LANES, digit >> bit & 1);
    present &= digit >> bit & 1 ? set : ~set;
  }
  return present;
}

// Rank entries among those of the warp with the same digit.
__device__ __forceinline__ void rank_in_warp(Entries& own, i64 first, i64 end, u32 shift,
                                             u32* counts) {
  for (u32 d = lane_id(); d < DIGITS; d += 32) counts[d] = 0;
  __syncwarp();
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) {
    bool is_entry = first + 32 * k < end;
    u32 digit = digit_of(own.pair[k], shift);
    u32 peers = peers_of(__ballot_sync(ALL_LANES, is_entry), digit);
    u32 before = is_entry ? counts[digit] : 0;
    own.rank[k] = before + lanes_before(peers);
    __syncwarp();
    if (is_entry && !lanes_before(peers)) counts[digit] = before + __popc(peers);
    __syncwarp();
  }
}

// Turn the warps' counts of digit d into sums over the warps before; returns the sum over all.
__device__ __forceinline__ u32 sum_warps(Pool& pool, u32 d) {
  u32 sum = 0;
#pragma unroll
  for (u32 warp = 0; warp < WARPS; ++warp) {
    u32 here = pool.of_warp[warp][d];
    pool.of_warp[warp][d] = sum;
    sum += here;
  }
  return sum;
}

// How many entries with digit d, or a lower one, go before those of this tile with digit d, of
// which there are `count`; `lower` is the number of all entries with lower digits, known to tile 0.
__device__ __forceinline__ u64 look_back_digit(volatile u64* status, u32 tile, u32 d, u64 count,
                                               u64 lower) {
  volatile u64* word = status + u64(tile) * DIGITS + d;
  if (tile == 0) {
    *word = PREFIX | (lower + count);
    return lower;
  }
  *word = SUM | count;
  u64 before = 0, seen;
  volatile u64* at = word;
  do {
    at -= DIGITS;
    while ((seen = *at) == 0) {
    }
    before += seen & VALUE;
  } while (!(seen >> 63));
  *word = PREFIX | (before + count);
  return before;
}

// One pass over the digit at `shift`, a block a tile. from: pairs; null: the graph's entries. to:
// pairs; null: sources and targets. counts: u64[DIGITS], of this digit. status: u64[1 + tiles *
// DIGITS].
extern "C" __global__ void __launch_bounds__(BLOCK, 2)
    sort_pass(const i64* indptr, const u32* indices, i64 n, i64 m, i64 shift, const u64* counts,
              u64* status, const u64* from, u64* to, u32* sources, u32* targets) {
  extern __shared__ u64 memory[];
  Pool& pool = *(Pool*)memory;
  u32 tile = take_tile(status);
  i64 tile_first = i64(tile) * TILE, end = min(tile_first + TILE, m);
  i64 first = tile_first + warp_id() * (32 * EACH) + lane_id();
  Entries own;
  if (from) {
#pragma unroll
    for (u32 k = 0; k < EACH; ++k)
      if (first + 32 * k < end) own.pair[k] = from[first + 32 * k];
  } else {
    read_rows({indptr, indices, n, m}, tile_first, first, end, own);
  }
  u32* of_warp = pool.of_warp[warp_id()];
  rank_in_warp(own, first, end, u32(shift), of_warp);
  __syncthreads();
  u32 d = threadIdx.x, count = d < DIGITS ? sum_warps(pool, d) : 0, all;
  u64 every, lower = block_exclusive<BLOCK>(tile == 0 && d < DIGITS ? counts[d] : 0, every);
  u32 start = block_exclusive<BLOCK>(count, all);
  if (d < DIGITS) {
    pool.start[d] = start;
    pool.offset[d] = i64(look_back_digit(status + 1, tile, d, count, lower)) - start;
  }
#pragma unroll
  for (u32 k = 0; k < EACH; ++k)
    if (first + 32 * k < end) own.rank[k] += of_warp[digit_of(own.pair[k], u32(shift))];
  __syncthreads();
#pragma unroll
  for (u32 k = 0; k < EACH; ++k)
    if (first + 32 * k < end)
      pool.pair[pool.start[digit_of(own.pair[k], u32(shift))] + own.rank[k]] = own.pair[k];
  __syncthreads();
  for (u32 i = threadIdx.x; i < end - tile_first; i += BLOCK) {
    u64 pair = pool.pair[i];
    i64 place = pool.offset[digit_of(pair, u32(shift))] + i;
    if (to) {
      to[place] = pair;
    } else {
      sources[place] = u32(pair);
      targets[place] = u32(pair >> 32);
    }
  }
}

// A thread an entry of the sorted ones, and one behind the last: starts[n+1], where rows begin.
// Empty rows begin where the next one does: a few are written by the thread that comes upon them,
// many by its warp.
extern "C" __global__ void find_starts(const u32* targets, i64 n, i64 m, i64* starts) {
  i64 i = thread_number();
  i64 row = i <= m ? (i ? i64(targets[i - 1]) + 1 : 0) : 0;
  i64 end = i < m ? i64(targets[i]) + 1 : i == m ? n + 1 : 0;  // rows row … end - 1 begin at i
  u32 many = __ballot_sync(ALL_LANES, end - row > FEW);
  for (; many; many &= many - 1) {
    u32 lane = __ffs(many) - 1;
    i64 upto = __shfl_sync(ALL_LANES, end, lane);
    for (i64 at = __shfl_sync(ALL_LANES, row, lane) + lane_id(); at < upto; at += 32)
      starts[at] = i - lane_id() + lane;
  }
  if (end - row <= FEW)
    for (; row < end; ++row) starts[row] = i;
}
