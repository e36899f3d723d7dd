// The transpose of a CSR: its entries sorted by target, least significant digit first.
//
// Idea: only the bits in use are sorted by, eight a pass, and an entry travels as target << 32 |
// source. A pass counts the digits of each tile of entries, sums the counts, digit by digit and
// within a digit tile by tile (the host's running sum), and moves the entries. Within a tile every
// warp ranks consecutive entries, in order, so the sort is stable: rows come out sorted, because
// sources came in rising order. Entries are put in order in shared memory first, so that those of a
// digit are written side by side. Hubs need no special treatment.
//
// Source: Merrill and Grimshaw, "High performance and scalable radix sorting: a case study of
// implementing dynamic parallelism for GPU computing", Parallel Processing Letters 21, 2011.
//
// Instances: move_entries<false, false>, move_entries<false, true>, move_entries<true, false>,
//   move_entries<true, true>
#include "lpma/cuda/rows.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK = 256, WARPS = BLOCK / 32, DIGITS = 256;
constexpr u32 TILE = 4096, OF_WARP = TILE / WARPS, ITEMS = OF_WARP / 32;
static_assert(DIGITS == BLOCK, "a thread a digit");

// counts[digit][tile] of entries, which are given as words, or by their targets where is_first. A
// block a tile.
extern "C" __global__ void count_digits(const u32* targets, const u64* words, i64 is_first, i64 m,
                                        i64 shift, u32* counts) {
  __shared__ u32 of_digit[DIGITS];
  of_digit[threadIdx.x] = 0;
  __syncthreads();
  i64 first = i64(blockIdx.x) * TILE, end = min(first + TILE, m);
  for (i64 i = first + threadIdx.x; i < end; i += BLOCK) {
    u32 target = is_first ? targets[i] : u32(words[i] >> 32);
    atomicAdd(&of_digit[target >> shift & (DIGITS - 1)], 1u);
  }
  __syncthreads();
  counts[i64(threadIdx.x) * gridDim.x + blockIdx.x] = of_digit[threadIdx.x];
}

// The entries of a tile, where lane `lane` of a warp has one in 32: read, and ranked.
struct Tile {
  u32 (*next)[DIGITS];  // of each warp and digit, the rank of the next entry

  __device__ __forceinline__ u32 rank(u32 digit, bool is_there) const {
    u32 peers = __match_any_sync(ALL_LANES, is_there ? digit : DIGITS);
    u32* at = &next[warp_id()][digit];
    u32 rank = is_there ? *at + lanes_before(peers) : 0;
    __syncwarp();
    if (is_there && lanes_before(peers) == 0) *at += __popc(peers);
    __syncwarp();
    return rank;
  }
};

// One pass. FIRST: entries come from a CSR of n rows, else from `words`. LAST: they go to `targets`
// and `sources`, else to `moved`. ends: the running sums of `counts`. A block a tile.
template <bool FIRST, bool LAST>
__global__ void __launch_bounds__(BLOCK)
move_entries(const i64* indptr, const u32* indices, i64 n, const u64* words, i64 m, i64 shift,
             const u32* counts, const i64* ends, u64* moved, u32* targets, u32* sources) {
  __shared__ u64 held[TILE];
  __shared__ u32 next[WARPS][DIGITS];
  __shared__ i64 base[DIGITS];
  __shared__ i64 bounds[2];
  i64 start = i64(blockIdx.x) * TILE, end = min(start + TILE, m);
  for (u32 w = 0; w < WARPS; ++w) next[w][threadIdx.x] = 0;
  if (FIRST && threadIdx.x == 0) bounds[0] = last_start(indptr, 0, n - 1, start);
  if (FIRST && threadIdx.x == 32) bounds[1] = last_start(indptr, 0, n - 1, end - 1);
  __syncthreads();
  Tile tile = {next};
  u64 word[ITEMS];
  u32 rank[ITEMS];
  for (u32 k = 0; k < ITEMS; ++k) {
    i64 i = start + warp_id() * OF_WARP + 32 * k + lane_id();
    bool is_there = i < end;
    if (!is_there) word[k] = 0;
    else if (FIRST) word[k] = u64(indices[i]) << 32 | last_start(indptr, bounds[0], bounds[1], i);
    else word[k] = words[i];
    rank[k] = tile.rank(word[k] >> 32 >> shift & (DIGITS - 1), is_there);
  }
  __syncthreads();
  u32 of_digit = 0;  // a thread a digit
  for (u32 w = 0; w < WARPS; ++w) {
    u32 here = next[w][threadIdx.x];
    next[w][threadIdx.x] = of_digit;
    of_digit += here;
  }
  u32 total, before = block_exclusive<BLOCK>(of_digit, total);
  for (u32 w = 0; w < WARPS; ++w) next[w][threadIdx.x] += before;
  i64 at = i64(threadIdx.x) * gridDim.x + blockIdx.x;
  base[threadIdx.x] = ends[at] - counts[at] - before;
  __syncthreads();
  for (u32 k = 0; k < ITEMS; ++k) {
    i64 i = start + warp_id() * OF_WARP + 32 * k + lane_id();
    u32 digit = word[k] >> 32 >> shift & (DIGITS - 1);
    if (i < end) held[next[warp_id()][digit] + rank[k]] = word[k];
  }
  __syncthreads();
  for (u32 j = threadIdx.x; j < end - start; j += BLOCK) {
    i64 to = base[held[j] >> 32 >> shift & (DIGITS - 1)] + j;
    if (LAST) {
      targets[to] = held[j] >> 32;
      sources[to] = u32(held[j]);
    } else {
      moved[to] = held[j];
    }
  }
}
