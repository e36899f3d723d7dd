// Find where each key operation of a sorted batch belongs, and what it does there.
//
// As on the CPU (lpma/backend/numba/locate.py), every run of one key is folded onto the stored
// state, so that a batch is planned by its net change. A thread takes a run: it walks down the
// fences, whose top TOP_LAYERS lie in shared memory, and searches the segment. The rows that do
// something, and the leaves that they touch, are then listed (listing.cuh).
//
// Times are not read, since they may still be on their way: a row keeps the place whose time it
// takes. Only a batch that lets edges expire has them read, and waits for them.
//
// Latency rules here: m reads that wait for each other, the lower ones from the L2 cache, then a
// segment's keys. Bytes a row: some 12 of the sort, one or two sectors of a segment, 25 of results.
//
// Requires: rows sorted (sort.cu); every segment's keys sorted and within its fences.
#pragma once
#include "lpma/backend/cuda/kernels/listing.cuh"

constexpr int TOP_LAYERS = 11;
constexpr double MAX_WEIGHT = 1e30;

// The top of the tree's fences, in shared memory.
__device__ void load_top(const Store& s, u64* top) {
  constexpr u32 EACH = (1 << TOP_LAYERS) / THREADS;
  u32 n = 1u << min(s.m, TOP_LAYERS);
  u64 fence[EACH];  // so that all reads are under way together
#pragma unroll
  for (u32 j = 0; j < EACH; ++j) {
    u32 i = j * THREADS + threadIdx.x;
    fence[j] = i < n ? s.fences[i] : 0;
  }
#pragma unroll
  for (u32 j = 0; j < EACH; ++j) top[j * THREADS + threadIdx.x] = fence[j];
  __syncthreads();
}

// Below the top, three layers are read at a time, since all their fences lie in three sectors.
__device__ __forceinline__ u32 rank_of_key(const Store& s, const u64* top, u64 key) {
  u32 p = 1;
  int layer = 0, upper = min(s.m, TOP_LAYERS);
  for (; layer < upper; ++layer) p = 2 * p + (key >= top[p]);
  for (; layer + 3 <= s.m; layer += 3) {
    u64 first = __ldg(&s.fences[p]);
    ulonglong2 second = __ldg((const ulonglong2*)&s.fences[2 * p]);
    ulonglong2 left = __ldg((const ulonglong2*)&s.fences[4 * p]);
    ulonglong2 right = __ldg((const ulonglong2*)&s.fences[4 * p + 2]);
    bool x = key >= first, y = key >= (x ? second.y : second.x);
    bool z = key >= (x ? (y ? right.y : right.x) : (y ? left.y : left.x));
    p = 8 * p + 4 * x + 2 * y + z;
  }
  for (; layer < s.m; ++layer) p = 2 * p + (key >= __ldg(&s.fences[p]));
  return p - (1u << s.m);
}

// The number of keys below `key` among the first `count` of a segment, which are sorted: groups of
// eight are told apart by their last keys, and then all of a group are read together. Of four groups
// only two are asked: a sector less to read is worth more than to wait once less.
__device__ __forceinline__ u32 keys_below(const u64* keys, u32 count, u64 key) {
  u32 low = 0, high = count;
  while (high - low > 32) {
    u32 middle = (low + high) >> 1;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  if (low + 15 < high && keys[low + 15] < key) low += 16;
  if (low + 7 < high && keys[low + 7] < key) low += 8;
  u32 below = 0;
  if (SEGMENT < 8 || SEGMENT > 32) {
#pragma unroll
    for (u32 i = 0; i < 8; ++i) below += low + i < high && keys[low + i] < key;
    return low + below;
  }
  // Two keys at a time: all slots of a group are there, filled or not. There is none behind the last.
  const u64* group = &keys[min(low, u32(SEGMENT) - 8)];
  ulonglong2 pair[4];
#pragma unroll
  for (u32 i = 0; i < 4; ++i) pair[i] = *(const ulonglong2*)&group[2 * i];
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    below += low + 2 * i < high && pair[i].x < key;
    below += low + 2 * i + 1 < high && pair[i].y < key;
  }
  return low + below;
}

// Whether a weight of the batch is finite and small enough: of its own type, as on the host, since
// the float next to MAX_WEIGHT is larger. Written so that NaN fails the comparison too.
__device__ __forceinline__ bool is_weight(const Batch& b, double weight) {
  return fabs(weight) <= (b.wide ? MAX_WEIGHT : double(float(MAX_WEIGHT)));
}

// The rest of the validation of a batch (sort.cu). It is done here because weights may arrive later
// than keys.
__device__ void validate_weights(const Batch& b, const Work& w) {
  for (i64 row = thread_number<THREADS>(); row < b.n; row += thread_count<THREADS>())
    if (is_weighted(kind_of(b, row)) && !is_weight(b, weight_of(b, row)))
      add_to(w, BAD_WEIGHT, 1);
}

// Locate a row. The first row of a run does it for all; the others do nothing.
__device__ void locate_row(const Store& s, const Batch& b, const Work& w, const u64* top,
                           const u64* keys, const u32* places, i64 row, i64 n, Counts& counts) {
  u64 key = keys[row];
  u32 place = places[row];
  bool single = row + 1 >= n || keys[row + 1] != key;
  w.action[row] = SKIP;
  if (row && keys[row - 1] == key) return;
  Operation first = operation_at<true>(b, place);  // before the walk, which does not wait for it
  u32 rank = rank_of_key(s, top, key), count = slots_in(s, rank);
  Slot at = segment_at(s, rank);
  u32 position = keys_below(s.keys[at.level] + at.index, count, key);
  bool found = position < count && key_at(s, at, position) == key;
  w.rank[row] = rank;
  w.position[row] = position;
  if (!single && row + LONG_RUN < n && keys[row + LONG_RUN] == key) {
    w.action[row] = found ? WRITE : INSERT;  // tells fold_long_runs whether the key is stored
    w.long_run[atomicAdd((u64*)&w.report[LONG_RUNS], 1ull)] = row;
    return;
  }
  State state = {found, Weight(0), STORED};
  int kind = first.kind;
  bool adds = kind == APPEND || kind == EXPIRE;  // other kinds do not look at the weight
  if (found && adds) state = stored_state(s, rank, position);
  if (single && kind != EXPIRE) {
    Run run = run_of(counts, key, state, 0);
    apply(run, first);
    note(w, row, found, run.state);
    return;
  }
  i64 end = row + 1, stored = 0;
  while (end < n && keys[end] == key) ++end;
  if (found && (kind == EXPIRE || (b.kind && end > row + 1))) stored = time_at(s, at, position);
  Run run = run_of(counts, key, state, stored);
  note(w, row, found, fold(b, places, row, end, run));
}

// Locate a sorted batch; by the whole grid, which needs a barrier before it reads what is found.
// top: from load_top.
__device__ void locate_all(const Store& s, const Batch& b, const Work& w, const u64* top,
                           bool checked) {
  __shared__ Counts counts;
  clear_counts(counts);
  if (!checked) validate_weights(b, w);
  i64 n = w.report[ROWS];
  const u64* keys = row_keys(w);
  const u32* places = row_places(w);
  Share share = row_share(n);
  for (i64 row = share.lo + threadIdx.x; row < share.hi; row += THREADS)
    locate_row(s, b, w, top, keys, places, row, n, counts);
  publish_share(w, share);
  grid_sync();
  if (w.report[LONG_RUNS]) {
    fold_long_runs(s, b, w, keys, places, n, counts);
    grid_sync();
    publish_share(w, share);
    grid_sync();
  }
  report_counts(w, counts);
  list_share(w, share, keys);
}
