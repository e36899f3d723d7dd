// Sorting a batch in one cooperative kernel: least significant digit first, eight bits a pass.
//
// Idea: the two halves of a key are ids, and only their low bits are in use; the host says how
// many (`low_bits` of the target, `bits` in all), so twenty-bit ids take five passes, not eight.
// A pass is three barriers of the grid, about a microsecond each, and no launch. Every warp owns
// consecutive rows and places them in order, so the sort is stable.
//
// Fixed when compiled: ORDER (1: say where each row stood too). Launched with at most as many
// blocks as the device holds at once; `histogram` has 256 words a block.
#include <cooperative_groups.h>

#include "benchmarks/controls/sorted_batch.cuh"

constexpr u32 THREADS = 256, WARPS = THREADS / 32, DIGITS = 256;

__device__ __forceinline__ u64 squeeze(u64 key, u32 low_bits) {
  return low_bits == 32 ? key : (key >> 32 << low_bits) | u32(key);
}

__device__ __forceinline__ u64 unsqueeze(u64 word, u32 low_bits) {
  return low_bits == 32 ? word : (word >> low_bits << 32) | (word & ((1ull << low_bits) - 1));
}

// The rows of this warp that have the same digit as this lane's.
__device__ __forceinline__ u32 same_digit(bool in, u32 digit) {
  return __match_any_sync(ALL_LANES, in ? digit : DIGITS);
}

__device__ __forceinline__ u32 inclusive_sum(u32 x) {
  for (int by = 1; by < 32; by <<= 1) {
    u32 other = __shfl_up_sync(ALL_LANES, x, by);
    if (threadIdx.x % 32 >= by) x += other;
  }
  return x;
}

// next[warp][digit]: where the warp's next row of that digit goes. Thread d has digit d; `blocks`
// holds the blocks' counts of each digit, and behind them what stands before each digit.
__device__ void find_places(u32 (*next)[DIGITS], const u32* blocks, const u32* digits) {
  u32 d = threadIdx.x, place = digits[d] + blocks[d * gridDim.x + blockIdx.x];
  for (u32 w = 0; w < WARPS; ++w) {
    u32 here = next[w][d];
    next[w][d] = place;
    place += here;
  }
  __syncthreads();
}

// Turn the blocks' counts of each digit into sums over the blocks before; a warp a digit.
__device__ void sum_digits(u32* blocks, u32* digits) {
  u32 lane = threadIdx.x % 32;
  for (u32 d = blockIdx.x * WARPS + threadIdx.x / 32; d < DIGITS; d += gridDim.x * WARPS) {
    u32 total = 0;
    for (u32 first = 0; first < gridDim.x; first += 32) {
      u32 b = first + lane, mine = b < gridDim.x ? blocks[d * gridDim.x + b] : 0;
      u32 sum = inclusive_sum(mine);
      if (b < gridDim.x) blocks[d * gridDim.x + b] = total + sum - mine;
      total += __shfl_sync(ALL_LANES, sum, 31);
    }
    if (lane == 0) digits[d] = total;
  }
}

// digits[d] summed over the digits before d, by every block for itself, into `before`.
__device__ void sum_totals(const u32* digits, u32* before) {
  __shared__ u32 of_warp[WARPS];
  u32 mine = digits[threadIdx.x], sum = inclusive_sum(mine);
  if (threadIdx.x % 32 == 31) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  for (u32 w = 0; w < threadIdx.x / 32; ++w) sum += of_warp[w];
  before[threadIdx.x] = sum - mine;
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    radix_sort(const u64* keys, u32 n, u32 low_bits, u32 bits, u64* words_a, u64* words_b,
               i64* order_a, i64* order_b, u32* histogram) {
  __shared__ u32 next[WARPS][DIGITS], before[DIGITS];
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = gridDim.x * WARPS;
  u32 each = ((n + 31) / 32 + warps - 1) / warps * 32;
  u32 lo = min(u64(blockIdx.x * WARPS + warp) * each, u64(n)), hi = min(u64(lo) + each, u64(n));
  u32* digits = histogram + DIGITS * gridDim.x;
  for (u32 shift = 0; shift < bits; shift += 8) {
    bool first = shift == 0, last = shift + 8 >= bits;
    for (u32 d = lane; d < DIGITS; d += 32) next[warp][d] = 0;
    __syncwarp();
    for (u32 row = lo + lane; row - lane < hi; row += 32) {
      bool in = row < hi;
      u64 word = !in ? 0 : first ? squeeze(keys[row], low_bits) : words_a[row];
      u32 digit = word >> shift & (DIGITS - 1), peers = same_digit(in, digit);
      if (in && lane == __ffs(peers) - 1) next[warp][digit] += __popc(peers);
      __syncwarp();
    }
    __syncthreads();
    u32 sum = 0;
    for (u32 w = 0; w < WARPS; ++w) sum += next[w][threadIdx.x];
    histogram[threadIdx.x * gridDim.x + blockIdx.x] = sum;
    cooperative_groups::this_grid().sync();
    sum_digits(histogram, digits);
    cooperative_groups::this_grid().sync();
    sum_totals(digits, before);
    find_places(next, histogram, before);
    for (u32 row = lo + lane; row - lane < hi; row += 32) {
      bool in = row < hi;
      u64 word = !in ? 0 : first ? squeeze(keys[row], low_bits) : words_a[row];
      u32 digit = word >> shift & (DIGITS - 1), peers = same_digit(in, digit);
      u32 to = in ? next[warp][digit] + __popc(peers & ((1u << lane) - 1)) : 0;
      __syncwarp();
      if (in && lane == __ffs(peers) - 1) next[warp][digit] += __popc(peers);
      __syncwarp();
      if (!in) continue;
      words_b[to] = last ? unsqueeze(word, low_bits) : word;
#if ORDER
      order_b[to] = first ? row : order_a[row];
#endif
    }
    cooperative_groups::this_grid().sync();
    u64* words = words_a;
    words_a = words_b, words_b = words;
    i64* order = order_a;
    order_a = order_b, order_b = order;
  }
}
