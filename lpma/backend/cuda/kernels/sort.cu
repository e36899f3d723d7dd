// From a batch's rows to key operations, sorted by key, and by arrival within a key.
//
// Source: least-significant-digit radix sort, eight bits a pass. Only the bits in use are sorted:
// those above the largest source and above the largest target are squeezed out.
//
// Idea: one cooperative kernel, a block a multiprocessor. Rows stay in registers from when they are
// read until they are written: entry i of a lane is row 32 i + lane among the consecutive rows of
// its warp. Ranking finds the lanes of equal digit by ballots and counts in the warp's own counters,
// so rows keep their order and the sort is stable; a row is ranked once a pass. On their way out
// rows go through shared memory by digit, so that neighbours write to neighbours. A pass has one
// barrier over the grid. Before a block writes, it must know how many rows of each digit the blocks
// before it have; blocks tell each other while they put their rows in order.
//
// Encoding: rows without a key (queries, and loops seen from their end) are NO_KEY in registers,
// which no squeezed key is, and drop out in the first pass. What lies behind the last row is NO_KEY
// too.
//
// Memory order: histogram[pass][block][digit] is 0 until the count is known, then the count + 1. It
// is cleared before the first pass, and a barrier over the grid follows. As in lookback.cuh the word
// itself is the news, and there is no fence. All blocks are resident (a cooperative launch), so the
// wait ends.
//
// The rows are validated on the way (weights when locating), as Columns.validated does on the host.
// Bad rows are counted in the report, and nothing later writes to the store.
//
// Bytes: 12 read and written a row and pass, nearly all in the L2 cache up to 10^6 rows; blocks of
// more than BLOCK_ROWS rows read them twice a pass. Beside that every block reads the counts of the
// others once a pass, a KiB each: latency rules up to some 10^5 rows.
#include "lpma/backend/cuda/kernels/make_keys.cuh"
#include "lpma/cuda/grid.cuh"

constexpr int SORT_THREADS = 1024, SORT_WARPS = SORT_THREADS / 32;
constexpr int QUARTER = SORT_WARPS / 4;  // warps whose counts thread (quarter, digit) sums up
constexpr int DIGIT_BITS = 8;
constexpr int NOTED = ROWS + 1;  // words of the report, the first ones, that making keys writes

static_assert(DIGITS == 1 << DIGIT_BITS && SORT_THREADS == 4 * DIGITS, "a thread a quarter");

constexpr int TILES = 8;  // rows a thread
constexpr int BLOCK_ROWS = TILES * SORT_THREADS;
constexpr int PASSES = 64 / DIGIT_BITS;
constexpr int READ = 17;  // counts of other blocks that a thread reads together

struct Rows {
  u64 word[TILES];
  u32 place[TILES];
  u32 to[TILES];  // rank among the rows of the digit: the warp's, then the block's
};

// The consecutive rows of a warp. Buffers of 2^31 rows exceed any device.
struct Span {
  u32 lo, hi;
};

// A block's counts while it ranks, in shared memory. They are dead once every row knows its rank.
struct Counts {
  u32 of_warp[SORT_WARPS][DIGITS];
  u32 of_quarter[4][DIGITS];
};

__device__ __forceinline__ u32 own_digit() { return threadIdx.x & (DIGITS - 1); }
__device__ __forceinline__ u32 own_quarter() { return threadIdx.x / DIGITS; }

// Keys -----------------------------------------------------------------------------------------

__device__ __forceinline__ void read_rows(const u64* words, const u32* places, Span span,
                                          Rows& rows) {
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    u32 at = span.lo + 32 * i + lane_id();
    bool in = at < span.hi;
    rows.word[i] = in ? words[at] : NO_KEY;
    rows.place[i] = in ? places[at] : 0;
  }
}

// Read the rows that keys are made of, each as if it were (src, dst), with the kind in `to`.
// Reading is apart from what follows so that all reads are under way together.
__device__ __forceinline__ void read_batch(const Batch& b, const Source& s, Span span,
                                           Rows& rows) {
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    u32 at = span.lo + 32 * i + lane_id();
    bool in = at < span.hi;
    u32 row = s.direction == BOTH ? at >> 1 : at;
    rows.place[i] = row;
    rows.to[i] = in ? kind_of(b, row) : FIRST_QUERY;
    rows.word[i] = in ? edge_key(b.src[row], b.dst[row]) : NO_KEY;
  }
}

// The bits in use of the keys that a thread has made, and how many keys these are.
struct Seen {
  u32 src, dst, rows;
};

// Make the keys of a warp. An undirected edge has one for each of its sides, side by side.
__device__ __forceinline__ void make_rows(const Batch& b, const Work& w, const Source& s, Span span,
                                          Rows& rows, Seen& seen, u32* noted) {
  if (s.made)
    read_rows(w.key[0], w.place[0], span, rows);
  else
    read_batch(b, s, span, rows);
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    u32 at = span.lo + 32 * i + lane_id();
    bool in = at < span.hi, second = s.direction == BOTH && (at & 1);
    if (!s.made) {
      u32 u = key_src(rows.word[i]), v = key_dst(rows.word[i]);
      int kind = rows.to[i];
      if (in && !s.checked && !second)
        count_if_bad(kind, u, v, [&](int word) { atomicAdd(&noted[word], 1u); });
      rows.word[i] = key_of(u, v, kind, second || s.direction == REVERSE, second);
    }
    bool is = rows.word[i] != NO_KEY;
    seen.src |= is ? key_src(rows.word[i]) : 0;
    seen.dst |= is ? key_dst(rows.word[i]) : 0;
    seen.rows += is;
  }
}

// Add what the threads of the block saw to `noted`, in shared memory.
__device__ __forceinline__ void note_seen(Seen seen, u32* noted) {
  u32 src = lanes_or(seen.src), dst = lanes_or(seen.dst), rows = lanes_sum(seen.rows);
  if (lane_id() == 0 && rows) {
    atomicOr(&noted[SRC_BITS], src);
    atomicOr(&noted[DST_BITS], dst);
    atomicAdd(&noted[ROWS], rows);
  }
}

// The bits in use of sources and targets: a squeezed key has src + dst bits.
struct Bits {
  int src, dst;
};

__device__ __forceinline__ int bits_of(u32 word) { return 32 - __clz(word); }

__device__ __forceinline__ u64 squeeze(u64 key, Bits bits) {
  if (key == NO_KEY || bits.dst == 32) return key;
  return (u64(key_src(key)) << bits.dst) | key_dst(key);
}

__device__ __forceinline__ u64 unsqueeze(u64 word, Bits bits) {
  return edge_key(u32(word >> bits.dst), u32(word & ((1ull << bits.dst) - 1)));
}

// Ranks ----------------------------------------------------------------------------------------

__device__ __forceinline__ u32 digit_of(u64 word, int shift) {
  return u32(word >> shift) & (DIGITS - 1);
}

// The lanes that have a key and the same digit.
__device__ __forceinline__ u32 peers_of(bool is, u32 digit) {
  u32 peers = __ballot_sync(ALL_LANES, is);
#pragma unroll
  for (int bit = 0; bit < DIGIT_BITS; ++bit) {
    u32 set = __ballot_sync(ALL_LANES, digit >> bit & 1);
    peers &= digit >> bit & 1 ? set : ~set;
  }
  return peers;
}

// Rank rows within their warps. Returns the number of the block's rows of own_digit().
__device__ __forceinline__ u32 count_digits(Rows& rows, int tiles, int shift, Counts& c) {
  u32* mine = c.of_warp[warp_id()];
  for (int d = lane_id(); d < DIGITS; d += 32) mine[d] = 0;
  __syncwarp();
  u32 lower = (1u << lane_id()) - 1;
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    if (i >= tiles) break;
    bool is = rows.word[i] != NO_KEY;
    u32 digit = digit_of(rows.word[i], shift), peers = peers_of(is, digit);
    u32 before = mine[digit];
    rows.to[i] = before + __popc(peers & lower);
    __syncwarp();
    if (is && !(peers & lower)) mine[digit] = before + __popc(peers);
    __syncwarp();
  }
  __syncthreads();
  u32 sum = 0;
#pragma unroll
  for (int j = 0; j < QUARTER; ++j) sum += c.of_warp[own_quarter() * QUARTER + j][own_digit()];
  c.of_quarter[own_quarter()][own_digit()] = sum;
  __syncthreads();
  u32 total = 0;
#pragma unroll
  for (int q = 0; q < 4; ++q) total += c.of_quarter[q][own_digit()];
  return total;
}

// Turn the counts of warps into sums over the warps before, from `start` on: where the first row of
// a digit of each warp goes. Follows count_digits; the caller adds a barrier after it.
__device__ __forceinline__ void sum_warps(Counts& c, u32 start) {
  u32 q = own_quarter(), d = own_digit();
  for (int before = 0; before < q; ++before) start += c.of_quarter[before][d];
#pragma unroll
  for (int j = 0; j < QUARTER; ++j) {
    u32 here = c.of_warp[q * QUARTER + j][d];
    c.of_warp[q * QUARTER + j][d] = start;
    start += here;
  }
}

__device__ __forceinline__ void add_warps(Rows& rows, int tiles, int shift,
                                          const Counts& c) {
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    if (i >= tiles) break;
    rows.to[i] += c.of_warp[warp_id()][digit_of(rows.word[i], shift)];
  }
}

// The sum of x over the digits before own_digit(), where x is the same in all quarters; `all` gets
// the sum over all digits. Every thread calls it; there is a barrier between any two calls. Unlike
// the scans of scan.cuh it sums each quarter of the block by itself.
__device__ __forceinline__ u32 sum_before(u32 x, u32& all) {
  __shared__ u32 of_warp[SORT_WARPS];
  u32 inclusive = warp_inclusive(x), warp = warp_id(), first = warp & ~(QUARTER - 1);
  if (lane_id() == 31) of_warp[warp] = inclusive;
  __syncthreads();
  u32 before = inclusive - x;
  all = 0;
#pragma unroll
  for (int i = 0; i < QUARTER; ++i) {
    if (first + i < warp) before += of_warp[first + i];
    all += of_warp[first + i];
  }
  return before;
}

// Passes ----------------------------------------------------------------------------------------

// Dynamic shared memory: counting and staging take turns.
union Pool {
  Counts counts;
  struct {
    u64 word[BLOCK_ROWS];
    u32 place[BLOCK_ROWS];
  } staged;
};

// How n rows are shared out: `tiles` times SORT_THREADS to a block, in chunks that fit its
// registers.
struct Shares {
  u32 n, tiles, chunks, step;  // step: tiles a chunk
};

__device__ __forceinline__ Shares shares_of(u32 n) {
  u32 a_tile = gridDim.x * SORT_THREADS;
  u32 tiles = max(1u, (n + a_tile - 1) / a_tile), chunks = (tiles + TILES - 1) / TILES;
  return {n, tiles, chunks, (tiles + chunks - 1) / chunks};
}

__device__ __forceinline__ Span warp_span(const Shares& s, u32 chunk) {
  u32 first = blockIdx.x * s.tiles, last = first + min(s.tiles, (chunk + 1) * s.step);
  u32 hi = min(last * SORT_THREADS, s.n);
  u32 lo = (first + chunk * s.step) * SORT_THREADS + warp_id() * 32 * s.step;
  return {lo, min(lo + 32 * s.step, hi)};
}

__device__ void put_rows(u64* words, u32* places, Span span, const Rows& rows) {
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    u32 at = span.lo + 32 * i + lane_id();
    if (at >= span.hi) continue;
    words[at] = rows.word[i];
    places[at] = rows.place[i];
  }
}

// Put the block's rows in order of the digit, in shared memory. `start` gets the place there of the
// first row of own_digit(), of which there are `total`. Returns the number of rows.
__device__ u32 stage_rows(Pool& pool, Rows& rows, const Shares& s, int shift, u32 total,
                          u32& start) {
  u32 all;
  start = sum_before(total, all);
  sum_warps(pool.counts, start);
  __syncthreads();
  add_warps(rows, s.step, shift, pool.counts);
  __syncthreads();  // the counts are dead
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    if (rows.word[i] == NO_KEY) continue;
    pool.staged.word[rows.to[i]] = rows.word[i];
    pool.staged.place[rows.to[i]] = rows.place[i];
  }
  return all;
}

// Where the block's rows of own_digit() begin among all rows, for the threads of the first quarter.
// The counts of the other blocks are read as they come.
__device__ u32 find_start(const u32* counts, u32* of_before, u32* of_all) {
  const volatile u32* words = counts + own_digit();
  u32 before = 0, all = 0;
  for (u32 first = own_quarter(); first < gridDim.x; first += 4 * READ) {
    u32 x[READ];
#pragma unroll
    for (int j = 0; j < READ; ++j) {
      u32 block = first + 4 * j;
      x[j] = block < gridDim.x ? words[block * DIGITS] : 1;
    }
#pragma unroll
    for (int j = 0; j < READ; ++j) {
      u32 block = first + 4 * j;
      while (x[j] == 0) {
        __nanosleep(20);
        x[j] = words[block * DIGITS];
      }
      all += x[j] - 1;
      if (block < blockIdx.x) before += x[j] - 1;
    }
  }
  atomicAdd(&of_before[own_digit()], before);
  atomicAdd(&of_all[own_digit()], all);
  __syncthreads();
  u32 grid_total, start = sum_before(of_all[own_digit()], grid_total);
  // For one thread a digit, which alone goes on to write there.
  return own_quarter() == 0 ? start + of_before[own_digit()] : 0;
}

// Write the staged rows: those of digit d go to where they lie + offset[d].
__device__ void write_rows(const Pool& pool, u32 n, const u32* offset, u64* to, u32* to_place,
                           int shift, Bits bits, bool last) {
#pragma unroll 4
  for (u32 i = threadIdx.x; i < n; i += SORT_THREADS) {
    u64 word = pool.staged.word[i];
    u32 at = offset[digit_of(word, shift)] + i;
    to[at] = last ? unsqueeze(word, bits) : word;
    to_place[at] = pool.staged.place[i];
  }
}

// Make the keys and report on them. A block with a single chunk keeps its keys in registers.
__device__ __forceinline__ void make_keys(const Batch& b, const Work& w, const Source& source,
                                          const Shares& shares, Rows& rows) {
  __shared__ u32 noted[NOTED];
  u32 word = threadIdx.x;
  if (word < NOTED) noted[word] = 0;
  __syncthreads();
  Seen seen = {0, 0, 0};
  for (u32 chunk = 0; chunk < shares.chunks; ++chunk) {
    Span span = warp_span(shares, chunk);
    make_rows(b, w, source, span, rows, seen, noted);
    if (shares.chunks > 1 && !source.made) put_rows(w.key[0], w.place[0], span, rows);
  }
  note_seen(seen, noted);
  __syncthreads();
  if (word >= NOTED || !noted[word]) return;
  if (word <= DST_BITS)
    atomicOr((u64*)&w.report[word], (u64)noted[word]);
  else
    add_to(w, word, noted[word]);
}

struct Pass {
  int from, shift;
  bool first, last;
};

__device__ __forceinline__ void fetch(const Work& w, const Shares& shares, u32 chunk, Pass p,
                                      Bits bits, Rows& rows) {
  if (!p.first || shares.chunks > 1)  // else they are in registers
    read_rows(w.key[p.from], w.place[p.from], warp_span(shares, chunk), rows);
#pragma unroll
  for (int i = 0; i < TILES; ++i)
    if (p.first) rows.word[i] = squeeze(rows.word[i], bits);
}

__device__ __forceinline__ void sort_pass(Pool& pool, const Work& w, const Shares& shares, Pass p,
                                          Bits bits, Rows& rows) {
  __shared__ u32 of_before[DIGITS], of_all[DIGITS];
  u32* offset = of_before;  // shared by both: some devices give a block 99 KiB only
  bool counts_own = own_quarter() == 0;  // one thread a digit does
  if (counts_own) of_before[own_digit()] = of_all[own_digit()] = 0;
  u32 total, in_all = 0, start, staged;
  for (u32 chunk = 0; chunk < shares.chunks; ++chunk) {
    fetch(w, shares, chunk, p, bits, rows);
    total = count_digits(rows, shares.step, p.shift, pool.counts);
    in_all += total;
  }
  u32* counts = w.histogram + p.shift / DIGIT_BITS * DIGITS * gridDim.x;
  volatile u32* own = counts + blockIdx.x * DIGITS + own_digit();
  if (counts_own) *own = in_all + 1;
  if (shares.chunks == 1) staged = stage_rows(pool, rows, shares, p.shift, total, start);
  u32 next = find_start(counts, of_before, of_all);
  for (u32 chunk = 0; chunk < shares.chunks; ++chunk) {
    if (shares.chunks > 1) {
      fetch(w, shares, chunk, p, bits, rows);
      total = count_digits(rows, shares.step, p.shift, pool.counts);
      staged = stage_rows(pool, rows, shares, p.shift, total, start);
    }
    if (counts_own) offset[own_digit()] = next - start;
    next += total;
    __syncthreads();
    write_rows(pool, staged, offset, w.key[1 - p.from], w.place[1 - p.from], p.shift, bits, p.last);
    __syncthreads();
  }
}

// Sort the key operations of a batch or, where `made` is not 0, the keys that stand there.
extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1)
    sort_batch(const __grid_constant__ Batch b, const __grid_constant__ Work w, int direction,
               int checked, i64 made) {
  extern __shared__ u64 memory[];
  Pool& pool = *(Pool*)memory;
  Source source = source_of(b.n, direction, checked, made);
  Shares shares = shares_of(source.n);
  Rows rows;
  if (*w.gate) return;
  for (u32 i = threadIdx.x; i < PASSES * DIGITS; i += SORT_THREADS)
    w.histogram[blockIdx.x * (PASSES * DIGITS) + i] = 0;
  make_keys(b, w, source, shares, rows);
  grid_sync();
  if (is_bad(w)) return;
  Bits bits = {bits_of(w.report[SRC_BITS]), bits_of(w.report[DST_BITS])};
  u32 n = w.report[ROWS];
  int from = 0, all = bits.src + bits.dst;
  for (int shift = 0; shift == 0 || shift < all; shift += DIGIT_BITS) {
    bool first = shift == 0, last = shift + DIGIT_BITS >= all;
    sort_pass(pool, w, shares, {from, shift, first, last}, bits, rows);
    from = 1 - from;
    shares = shares_of(n);  // without those that have no key
    if (!last) grid_sync();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) w.report[IN_SECOND] = from;
}
