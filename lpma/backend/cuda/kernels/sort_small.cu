// Sorting a small batch: what sort.cu does, by one cluster of blocks and in their shared memory.
//
// Idea: up to CLUSTER * BLOCK_ROWS rows fit the shared memory of eight blocks, which can write to
// each other's and have a barrier of a third of a microsecond. Row r lies in block r / (rows a
// block). A pass reads its rows into registers, ranks them (sort.cuh), tells every block its
// counts, and writes each row to where it goes: two barriers of the cluster, and nothing in global
// memory but the batch at the start and the sorted rows at the end. Latency is all that counts: the
// smallest batch takes as long as one of a row a thread.
//
// Requires: compute capability 9.0; a plain launch of CLUSTER blocks; at most CLUSTER * BLOCK_ROWS
// keys; a report of zeros. It leaves the report and the rows as sort.cu does.
#include "lpma/backend/cuda/kernels/sort.cuh"
#include "lpma/cuda/cluster.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

constexpr u32 CLUSTER = 8;  // the largest that every device takes
constexpr int TILES = 4;    // rows a thread
constexpr int BLOCK_ROWS = TILES * SORT_THREADS;

// Dynamic shared memory. Other blocks write to all of it but `counts`.
struct Pool {
  u64 word[BLOCK_ROWS];
  u32 place[BLOCK_ROWS];
  Counts counts;
  u32 of_block[CLUSTER][DIGITS];  // counts
  u32 noted[NOTED];               // of the whole batch
};

__device__ __forceinline__ Span warp_span(u32 n, u32 tiles, u32 rank) {
  u32 first = rank * tiles * SORT_THREADS, lo = first + warp_id() * 32 * tiles;
  return {lo, min(n, lo + 32 * tiles)};
}

// Where the block's rows of own_digit() begin among all rows.
__device__ __forceinline__ u32 find_start(const Pool& pool, u32 rank) {
  u32 before = 0, all = 0, total;
#pragma unroll
  for (u32 block = 0; block < CLUSTER; ++block) {
    u32 here = pool.of_block[block][own_digit()];
    if (block < rank) before += here;
    all += here;
  }
  return sum_before(all, total) + before;
}

// Add what this block noted to what every block of the cluster has: a warp a block.
__device__ __forceinline__ void tell_noted(Pool& pool, const u32* noted) {
  u32 word = lane_id();
  if (warp_id() >= CLUSTER || word >= NOTED || !noted[word]) return;
  u32* theirs = in_block(&pool.noted[word], warp_id());
  if (word <= DST_BITS)
    atomicOr(theirs, noted[word]);
  else
    atomicAdd(theirs, noted[word]);
}

// Write each row to where it goes: in the cluster's shared memory or, on the last pass, in the
// batch's buffers. offset[d]: where the block's rows of digit d begin among all.
__device__ __forceinline__ void scatter(Pool& pool, const Work& w, const Rows<TILES>& rows,
                                        const u32* offset, int shift, Bits bits, int log_rows,
                                        bool last, int to_pair) {
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    if (rows.word[i] == NO_KEY) continue;
    u32 to = offset[digit_of(rows.word[i], shift)] + rows.to[i];
    if (last) {
      w.key[to_pair][to] = unsqueeze(rows.word[i], bits);
      w.place[to_pair][to] = rows.place[i];
    } else {
      u32 block = to >> log_rows, at = to & ((1u << log_rows) - 1);
      in_block(pool.word, block)[at] = rows.word[i];
      in_block(pool.place, block)[at] = rows.place[i];
    }
  }
}

// As sort_batch in sort.cu.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(SORT_THREADS, 1)
    sort_small(const __grid_constant__ Batch b, const __grid_constant__ Work w, i64 lo, i64 hi,
               int direction, int checked, i64 made) {
  extern __shared__ u64 memory[];
  __shared__ u32 noted[NOTED], offset[DIGITS];
  Pool& pool = *(Pool*)memory;
  u32 rank = cluster_rank();
  Source source = source_of(lo, hi, direction, checked, made);
  Rows<TILES> rows;

  if (threadIdx.x < NOTED) noted[threadIdx.x] = pool.noted[threadIdx.x] = 0;
  __syncthreads();
  cluster_arrive();  // the blocks run, and their shared memory may be written
  u32 n = source.n;
  int log_rows = n <= CLUSTER * SORT_THREADS ? 10 : n <= 2 * CLUSTER * SORT_THREADS ? 11 : 12;
  u32 a_block = 1u << log_rows, tiles = a_block / SORT_THREADS;  // rows a block, a thread
  Seen seen = {0, 0, 0};
  make_rows(b, w, source, warp_span(n, tiles, rank), rows, seen, noted);
  note_seen(seen, noted);
  __syncthreads();
  cluster_wait();
  tell_noted(pool, noted);
  cluster_sync();
  if (rank == 0 && threadIdx.x < NOTED) w.report[threadIdx.x] = pool.noted[threadIdx.x];
  if (pool.noted[BAD_KIND] | pool.noted[BAD_VERTEX] | pool.noted[BAD_HOPS]) return;
  Bits bits = {bits_of(pool.noted[SRC_BITS]), bits_of(pool.noted[DST_BITS])};
  n = pool.noted[ROWS];
#pragma unroll
  for (int i = 0; i < TILES; ++i) rows.word[i] = squeeze(rows.word[i], bits);

  int passes = max(1, (bits.src + bits.dst + DIGIT_BITS - 1) / DIGIT_BITS);
  for (int pass = 0; pass < passes; ++pass) {
    int shift = pass * DIGIT_BITS;
    if (pass) read_rows(pool.word, pool.place, rank * a_block, warp_span(n, tiles, rank), rows);
    u32 total = count_digits(rows, tiles, shift, pool.counts);
    for (u32 block = 2 * own_quarter(); block < 2 * own_quarter() + 2; ++block)
      *in_block(&pool.of_block[rank][own_digit()], block) = total;
    cluster_arrive();
    sum_warps(pool.counts, 0);
    cluster_wait();
    u32 start = find_start(pool, rank);
    if (own_quarter() == 0) offset[own_digit()] = start;
    __syncthreads();
    add_warps(rows, tiles, shift, pool.counts);
    bool last = pass + 1 == passes;
    scatter(pool, w, rows, offset, shift, bits, log_rows, last, passes & 1);
    if (!last) cluster_sync();
  }
  if (rank == 0 && threadIdx.x == 0) w.report[IN_SECOND] = passes & 1;
}

#endif
