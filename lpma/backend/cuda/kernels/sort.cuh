// What both sorts of a batch share: making its keys, and ranking rows by a digit.
//
// Source: least-significant-digit radix sort, eight bits a pass. Only the bits in use are sorted:
// those above the largest source and above the largest target are squeezed out.
//
// Idea: a block has SORT_THREADS threads and holds its rows in registers: entry i of a lane is row
// 32 i + lane among the consecutive rows of its warp. Ranking finds the lanes of equal digit by
// ballots and counts in the warp's own counters, so rows keep their order and the sort is stable. A
// row is ranked once a pass; all later steps need only its place among the block's rows of the same
// digit.
//
// Encoding: rows without a key (queries, and loops seen from their end) are NO_KEY in registers,
// which no squeezed key is, and drop out in the first pass. What lies behind the last row is NO_KEY
// too.
#pragma once
#include "lpma/backend/cuda/kernels/make_keys.cuh"

constexpr int SORT_THREADS = 1024, SORT_WARPS = SORT_THREADS / 32;
constexpr int QUARTER = SORT_WARPS / 4;  // warps whose counts thread (quarter, digit) sums up
constexpr int DIGIT_BITS = 8;
constexpr int NOTED = ROWS + 1;  // words of the report, the first ones, that making keys writes

static_assert(DIGITS == 1 << DIGIT_BITS && SORT_THREADS == 4 * DIGITS, "a thread a quarter");

template <int TILES>
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

__device__ __forceinline__ void validate(int kind, u32 u, u32 v, u32* noted) {
  Bad bad = bad_row(kind, u, v);
  if (bad.kind) atomicAdd(&noted[BAD_KIND], 1u);
  if (bad.vertex) atomicAdd(&noted[BAD_VERTEX], 1u);
  if (bad.hops) atomicAdd(&noted[BAD_HOPS], 1u);
}

template <int TILES>
__device__ __forceinline__ void read_rows(const u64* words, const u32* places, u32 first, Span span,
                                          Rows<TILES>& rows) {
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    u32 at = span.lo + 32 * i + lane_id();
    bool in = at < span.hi;
    rows.word[i] = in ? words[at - first] : NO_KEY;
    rows.place[i] = in ? places[at - first] : 0;
  }
}

// Read the rows that keys are made of, each as if it were (src, dst), with the kind in `to`.
// Reading is apart from what follows so that all reads are under way together.
template <int TILES>
__device__ __forceinline__ void read_batch(const Batch& b, const Source& s, Span span,
                                           Rows<TILES>& rows) {
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    u32 at = span.lo + 32 * i + lane_id();
    bool in = at < span.hi;
    u32 row = s.lo + (s.direction == BOTH ? at >> 1 : at);
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
template <int TILES>
__device__ __forceinline__ void make_rows(const Batch& b, const Work& w, const Source& s, Span span,
                                          Rows<TILES>& rows, Seen& seen, u32* noted) {
  if (s.made)
    read_rows(w.key[0], w.place[0], 0, span, rows);
  else
    read_batch(b, s, span, rows);
#pragma unroll
  for (int i = 0; i < TILES; ++i) {
    u32 at = span.lo + 32 * i + lane_id();
    bool in = at < span.hi, second = s.direction == BOTH && (at & 1);
    if (!s.made) {
      u32 u = key_src(rows.word[i]), v = key_dst(rows.word[i]);
      int kind = rows.to[i];
      if (in && !s.checked && !second) validate(kind, u, v, noted);
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
template <int TILES>
__device__ __forceinline__ u32 count_digits(Rows<TILES>& rows, int tiles, int shift, Counts& c) {
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

template <int TILES>
__device__ __forceinline__ void add_warps(Rows<TILES>& rows, int tiles, int shift,
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
