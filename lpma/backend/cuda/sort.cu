// From a batch's rows to key operations, sorted by key, arrival order within a key.
//
// Source: least-significant-digit radix sort, eight bits a pass, over the bits in use only: those
// above the largest source and above the largest target are squeezed out (store.md). One
// cooperative kernel: a pass is three barriers, no launch. Every warp owns a run of consecutive
// rows, so that counting and placing see them in the same order and the sort is stable.
//
// The rows are validated on the way (weights when locating), as Columns.validated does on the
// host; a bad row is counted in the report and nothing later writes to the store.
//
// Bytes: 12 read and written a row and pass, nearly all of it in the L2 cache up to 10^6 rows.
#include "work.cuh"

enum Direction { FORWARD, REVERSE, BOTH };

constexpr u64 NO_KEY = LAST_FENCE;
constexpr u32 MAX_VERTEX = MARKER - 1;
constexpr int LAST_KIND = 9, HOPS = 7, MAX_HOPS = 255;
constexpr int ABREAST = 4;   // tiles of a warp whose rows are read together
constexpr int SCANNED = 12;  // and tiles of the blocks' counts

// The key operations of one row: none, one, or both sides of an undirected edge.
struct Keys {
  u64 first, second;
};

__device__ __forceinline__ Keys keys_of(const Batch& b, i64 row, int direction) {
  int kind = kind_of(b, row);
  u32 u = b.src[row], v = b.dst[row];
  if (kind >= FIRST_QUERY) return {NO_KEY, NO_KEY};
  if (kind > DELETE_EDGE) return {direction == REVERSE ? NO_KEY : edge_key(u, MARKER), NO_KEY};
  if (direction == REVERSE) return {edge_key(v, u), NO_KEY};
  return {edge_key(u, v), direction == BOTH && u != v ? edge_key(v, u) : NO_KEY};
}

__device__ __forceinline__ void validate(const Batch& b, const Work& w, i64 row) {
  int kind = kind_of(b, row);
  if (kind > LAST_KIND) add_to(w, BAD_KIND, 1);
  if (b.src[row] > MAX_VERTEX || b.dst[row] > MAX_VERTEX) add_to(w, BAD_VERTEX, 1);
  if (kind == HOPS && (b.dst[row] < 1 || b.dst[row] > MAX_HOPS)) add_to(w, BAD_HOPS, 1);
}

// How keys are squeezed: (src, dst) in src_bits + dst_bits, NO_KEY above all of them.
struct Bits {
  int src, dst, all;
};

__device__ __forceinline__ u64 squeeze(u64 key, Bits bits) {
  if (key == NO_KEY) return bits.src + bits.dst == 64 ? NO_KEY : 1ull << (bits.src + bits.dst);
  return bits.dst == 32 ? key : (u64(key_src(key)) << bits.dst) | key_dst(key);
}

__device__ __forceinline__ u64 unsqueeze(u64 word, Bits bits) {
  return edge_key(u32(word >> bits.dst), u32(word & ((1ull << bits.dst) - 1)));
}

// Write the keys as they are, and find which of their bits are in use.
__device__ void make_keys(const Batch& b, const Work& w, i64 lo, i64 hi, int direction,
                          bool checked) {
  int each = direction == BOTH ? 2 : 1;
  u32 src = 0, dst = 0, valid = 0;
  for (i64 row = lo + thread_number(); row < hi; row += thread_count()) {
    if (!checked) validate(b, w, row);
    Keys keys = keys_of(b, row, direction);
    for (int i = 0; i < each; ++i) {
      u64 key = i ? keys.second : keys.first;
      i64 to = (row - lo) * each + i;
      w.key[0][to] = key;
      w.place[0][to] = row;
      if (key == NO_KEY) continue;
      src |= key_src(key);
      dst |= key_dst(key);
      ++valid;
    }
  }
  src = __reduce_or_sync(ALL_LANES, src);
  dst = __reduce_or_sync(ALL_LANES, dst);
  valid = __reduce_add_sync(ALL_LANES, valid);
  if (lane_id() == 0 && valid) {
    atomicOr((u64*)&w.report[SRC_BITS], (u64)src);
    atomicOr((u64*)&w.report[DST_BITS], (u64)dst);
    add_to(w, ROWS, valid);
  }
}

__device__ __forceinline__ int bits_of(u32 word) { return 32 - __clz(word); }

// The rows of a warp: consecutive, so that order is kept.
__device__ __forceinline__ Share warp_share(i64 n) {
  i64 warps = i64(gridDim.x) * WARPS, tiles = (n + 31) / 32;
  i64 each = (tiles + warps - 1) / warps;
  i64 lo = min((i64(blockIdx.x) * WARPS + threadIdx.x / 32) * each * 32, n);
  return {lo, min(lo + each * 32, n)};
}

__device__ __forceinline__ u32 digit_of(u64 word, int shift) { return (word >> shift) & (DIGITS - 1); }

// Count the digits of each warp's rows into count[warp][digit].
__device__ void count_digits(const u64* words, Share rows, int shift, u32 (*count)[DIGITS]) {
  u32* mine = count[threadIdx.x / 32];
  for (int d = lane_id(); d < DIGITS; d += 32) mine[d] = 0;
  __syncwarp();
#pragma unroll ABREAST
  for (i64 row = rows.lo + lane_id(); row < rows.hi; row += 32)
    atomicAdd(&mine[digit_of(words[row], shift)], 1u);
  __syncthreads();
}

// The lanes whose digit is the same; DIGITS is one too.
__device__ __forceinline__ u32 peers_of(u32 digit) {
  u32 peers = ALL_LANES;
#pragma unroll
  for (int bit = 0; bit < 9; ++bit) {
    u32 set = __ballot_sync(ALL_LANES, digit >> bit & 1);
    peers &= digit >> bit & 1 ? set : ~set;
  }
  return peers;
}

// Turn the blocks' counts of each digit into where each block's rows of that digit begin. The
// digits are shared out over the grid; a warp scans the blocks' counts of one.
__device__ void scan_digits(const Work& w) {
  for (u32 d = blockIdx.x * WARPS + threadIdx.x / 32; d < DIGITS; d += gridDim.x * WARPS) {
    u32* counts = w.histogram + d * gridDim.x;
    u32 before = 0;
    for (u32 first = 0; first < gridDim.x; first += 32 * SCANNED) {
      u32 x[SCANNED];
#pragma unroll
      for (int j = 0; j < SCANNED; ++j) {
        u32 i = first + 32 * j + lane_id();
        x[j] = i < gridDim.x ? counts[i] : 0;
      }
#pragma unroll
      for (int j = 0; j < SCANNED; ++j) {
        u32 i = first + 32 * j + lane_id();
        u32 inclusive = warp_inclusive(x[j]);
        if (i < gridDim.x) counts[i] = before + inclusive - x[j];
        before += __shfl_sync(ALL_LANES, inclusive, 31);
      }
    }
    if (lane_id() == 0) w.histogram[DIGITS * gridDim.x + d] = before;  // the digit's total
  }
}

// Make count[warp][digit] the place of the warp's next row of that digit.
__device__ void find_places(const Work& w, u32 (*count)[DIGITS]) {
  u32 digit = threadIdx.x;  // THREADS == DIGITS
  Sums total;
  u32 of_digit = w.histogram[DIGITS * gridDim.x + digit];
  u32 next = block_exclusive({of_digit, 0, 0}, total).a;
  next += w.histogram[digit * gridDim.x + blockIdx.x];
  for (int warp = 0; warp < WARPS; ++warp) {
    u32 here = count[warp][digit];
    count[warp][digit] = next;
    next += here;
  }
  __syncthreads();
}

// One pass: rows go from `from` to `to`, by the digit at `shift`, whole keys after the last.
__device__ void place_rows(const u64* from, const u32* place, u64* to, u32* to_place, Share rows,
                           int shift, u32 (*count)[DIGITS], Bits bits, bool last) {
  u32* mine = count[threadIdx.x / 32];
  u32 lower = (1u << lane_id()) - 1;
  for (i64 tile = rows.lo; tile < rows.hi; tile += 32 * ABREAST) {
    u64 word[ABREAST];
    u32 held[ABREAST];
#pragma unroll
    for (int i = 0; i < ABREAST; ++i) {
      i64 row = tile + 32 * i + lane_id();
      if (row < rows.hi) {
        word[i] = from[row];
        held[i] = place[row];
      }
    }
    u32 digit[ABREAST], peers[ABREAST];
#pragma unroll
    for (int i = 0; i < ABREAST; ++i) {
      bool in = tile + 32 * i + lane_id() < rows.hi;
      digit[i] = in ? digit_of(word[i], shift) : DIGITS;
      peers[i] = peers_of(digit[i]);
    }
#pragma unroll
    for (int i = 0; i < ABREAST; ++i) {
      bool in = digit[i] < DIGITS;
      u32 at = in ? mine[digit[i]] + __popc(peers[i] & lower) : 0;
      __syncwarp();
      if (in && !(peers[i] & lower)) mine[digit[i]] += __popc(peers[i]);
      __syncwarp();
      if (!in) continue;
      to[at] = last ? unsqueeze(word[i], bits) : word[i];
      to_place[at] = held[i];
    }
  }
}

// Sort the key operations of rows lo … hi - 1, or (made) of the `made` keys that stand there.
extern "C" __global__ void __launch_bounds__(THREADS)
    sort_batch(const __grid_constant__ Batch b, const __grid_constant__ Work w, i64 lo, i64 hi,
               int direction, int checked, i64 made) {
  __shared__ u32 count[WARPS][DIGITS];
  i64 n = made ? made : (hi - lo) * (direction == BOTH ? 2 : 1);
  if (!made) make_keys(b, w, lo, hi, direction, checked);
  if (made) {
    u32 src = 0, dst = 0;
    for (i64 i = thread_number(); i < n; i += thread_count()) {
      src |= key_src(w.key[0][i]);
      dst |= key_dst(w.key[0][i]);
    }
    src = __reduce_or_sync(ALL_LANES, src);
    dst = __reduce_or_sync(ALL_LANES, dst);
    if (lane_id() == 0) {
      atomicOr((u64*)&w.report[SRC_BITS], (u64)src);
      atomicOr((u64*)&w.report[DST_BITS], (u64)dst);
    }
    if (thread_number() == 0) w.report[ROWS] = n;
  }
  grid_sync();
  Bits bits = {bits_of(w.report[SRC_BITS]), bits_of(w.report[DST_BITS]), 0};
  bits.all = min(64, bits.src + bits.dst + (w.report[ROWS] < n));
  if (is_bad(w)) return;
  Share rows = warp_share(n);
  for (i64 row = rows.lo + lane_id(); row < rows.hi; row += 32)
    w.key[0][row] = squeeze(w.key[0][row], bits);
  __syncwarp();
  int from = 0;
  for (int shift = 0; shift == 0 || shift < bits.all; shift += 8) {
    count_digits(w.key[from], rows, shift, count);
    u32 sum = 0;
    for (int warp = 0; warp < WARPS; ++warp) sum += count[warp][threadIdx.x];
    w.histogram[threadIdx.x * gridDim.x + blockIdx.x] = sum;
    grid_sync();
    scan_digits(w);
    grid_sync();
    find_places(w, count);
    place_rows(w.key[from], w.place[from], w.key[1 - from], w.place[1 - from], rows, shift, count,
               bits, shift + 8 >= bits.all);
    from = 1 - from;
    grid_sync();
  }
  if (thread_number() == 0) w.report[IN_SECOND] = from;
}
