// What both controls do with a sorted batch: search it, and count along it.
//
// A batch is k keys in rising order, equal ones in order of arrival; `order` is where each row
// stood in the batch, the place of its weight and time. The first row of a run of equal keys is
// its *head* and stands for the run. Runs are folded by one thread each: streams of different
// edges have no long ones.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

constexpr u32 ALL_LANES = ~0u;
constexpr u32 COUNTED = 1024;  // rows a block of `count_flags` counts; also its threads

// How many of rising[0 … n - 1] are smaller than `key`.
template <typename T>
__device__ __forceinline__ u64 lower_bound(const T* rising, u64 n, T key) {
  u64 low = 0;
  while (low < n) {
    u64 middle = (low + n) / 2;
    if (rising[middle] < key)
      low = middle + 1;
    else
      n = middle;
  }
  return low;
}

// Rows before j that were flagged: `before` counts within j's block, `blocks` the blocks before.
__device__ __forceinline__ u32 flagged_before(const u32* before, const u32* blocks, u32 j) {
  return before[j] + blocks[j / COUNTED];
}

// Called by all COUNTED threads of a block: `before` gets each one's count of flags before it,
// and blocks[block] the block's sum, which `sum_blocks` turns into that of the blocks before.
__device__ __forceinline__ void count_flags(bool flag, u32 j, u32 rows, u32* before, u32* blocks) {
  __shared__ u32 of_warp[COUNTED / 32];
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u32 votes = __ballot_sync(ALL_LANES, flag);
  if (lane == 0) of_warp[warp] = __popc(votes);
  __syncthreads();
  u32 sum = of_warp[lane];  // COUNTED / 32 is 32
  for (int by = 1; by < 32; by <<= 1) {
    u32 other = __shfl_up_sync(ALL_LANES, sum, by);
    if (lane >= by) sum += other;
  }
  u32 earlier = __shfl_sync(ALL_LANES, sum, (warp + 31) % 32);
  if (warp == 0) earlier = 0;
  if (j < rows) before[j] = earlier + __popc(votes & ((1u << lane) - 1));
  if (threadIdx.x == 31) blocks[blockIdx.x] = sum;
}

// One block of COUNTED threads: the exclusive sums of `blocks`, and in *total the sum of all.
__device__ __forceinline__ u32 sum_blocks(u32* blocks, u32 count) {
  __shared__ u32 of_warp[COUNTED / 32];
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, total = 0;
  for (u32 first = 0; first < count; first += COUNTED) {
    u32 i = first + threadIdx.x;
    u32 mine = i < count ? blocks[i] : 0, sum = mine;
    for (int by = 1; by < 32; by <<= 1) {
      u32 other = __shfl_up_sync(ALL_LANES, sum, by);
      if (lane >= by) sum += other;
    }
    if (lane == 31) of_warp[warp] = sum;
    __syncthreads();
    u32 earlier = total;
    for (u32 w = 0; w < COUNTED / 32; ++w) {
      if (w < warp) earlier += of_warp[w];
      total += of_warp[w];
    }
    if (i < count) blocks[i] = earlier + sum - mine;
    __syncthreads();
  }
  return total;
}

// The run that begins at row j: its weights summed, the time of its last row.
__device__ __forceinline__ void fold_run(const u64* keys, u32 k, u32 j, const i64* order,
                                         const float* weights, const i64* times, float* weight,
                                         i64* time) {
  u64 key = keys[j];
  float sum = weights[order[j]];
  u32 last = j;
  while (last + 1 < k && keys[last + 1] == key) sum += weights[order[++last]];
  *weight = sum;
  *time = times[order[last]];
}
