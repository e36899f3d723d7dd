// A batch applied by one launch: sorted, located, planned, moved.
//
// Idea: what rank.cuh, locate.cuh, judge.cuh, choose.cuh, leaves.cuh and windows.cuh do in turn has
// a barrier over the grid in between (a microsecond) instead of a launch each, and the device itself
// decides whether the batch goes in as planned. The host learns how it ended from words in its own
// memory, which are written before the slots are moved: so it does its part of the batch, and begins
// the next one, while the device moves. Whether the rows are good it learns first of all.
//
// What is not for this kernel, it leaves as it was and reports as refused: a batch with bad rows, one
// that makes the store grow or shrink, one so expensive that merging the whole store is cheaper, and
// windows that do not fit the scratch. The host then goes on from the located batch. Until it has,
// the gate is closed: batches that were launched behind a refused one touch nothing, and say so.
//
// Bytes: those of the kernels that it stands for. It is for small batches, whose time is latency; a
// large one is better off with as many blocks as each step takes, and with columns that arrive while
// it is located.
//
// Requires: a report of zeros; all columns there; a cooperative launch.
#include "lpma/backend/cuda/choose.cuh"
#include "lpma/backend/cuda/leaves.cuh"
#include "lpma/backend/cuda/locate.cuh"
#include "lpma/backend/cuda/rank.cuh"
#include "lpma/backend/cuda/windows.cuh"

// How a batch ended.
enum Verdict { SKIPPED, REFUSED, APPLIED };
// Words before the report: the ticket once the rows are found good; the ticket once all is said; the
// verdict.
constexpr int ANSWER_HEAD = 3;
constexpr int ON_THE_WAY = 2;

// The kernel's only argument. AtOnce in at_once.py writes it.
struct Order {
  Store store;
  Work work;
  Columns scratch;
  u64 scratch_slots;
  Batch batch;
  Batch given;  // the batch where it is read from first: in the host's memory, or `batch` itself
  Bounds bounds;
  u64* changed;  // for the history; null where none is kept
  u8* inserted;
  i64* answer;  // words of the host's memory
  i64 ticket;   // which no batch before had
  i64* next_report;  // to be cleared for the batch behind this one
  double most_cost, leaf_cost, window_cost;  // see lpma/sizing.py
  i64 lo, hi;  // the rows
  int direction, checked;
};

// A thread's rows, from `first` on every `step`, and the times of some, which are still on their way
// while the thread does something else.
struct Bringing {
  i64 first, step;
  i64 time[ON_THE_WAY];
};

// The rows that a thread brings: those blocks have them that have no tile to sort, unless few do.
__device__ __forceinline__ Bringing rows_to_bring(const Order& order, i64 keys) {
  i64 tiles = min((keys + TILE_ROWS - 1) / TILE_ROWS, i64(gridDim.x)), idle = gridDim.x - tiles;
  i64 blocks = 2 * idle < gridDim.x ? gridDim.x : idle, block = gridDim.x - 1 - blockIdx.x;
  bool brings = block < blocks && (order.given.src != order.batch.src || !order.checked);
  return {brings ? block * THREADS + threadIdx.x : order.given.n, blocks * THREADS, {}};
}

// Copy to the device what later steps read of the batch, which may lie in the host's memory, and
// validate weights. How long it takes goes by the number of reads from the host's memory: kinds, of
// which one serves a warp, are mostly null. Times are needed last: `land` waits for them.
__device__ __forceinline__ void bring_in(const Order& order, Bringing& mine) {
  const Batch &from = order.given, &to = order.batch;
  bool copies = from.src != to.src;
  for (i64 row = mine.first; row < from.n; row += mine.step) {
    double weight = weight_of(from, row);
    if (copies && to.kind) ((u8*)to.kind)[row] = kind_of(from, row);
    if (!order.checked && !is_weight(weight) && kind_of(from, row) == APPEND)
      add_to(order.work, BAD_WEIGHT, 1);
    if (copies && to.weight && to.wide) ((double*)to.weight)[row] = weight;
    if (copies && to.weight && !to.wide) ((float*)to.weight)[row] = weight;
  }
  if (!copies || !to.time) mine.first = from.n;
#pragma unroll
  for (int i = 0; i < ON_THE_WAY; ++i)
    if (mine.first + i * mine.step < from.n) mine.time[i] = from.time[mine.first + i * mine.step];
  for (i64 row = mine.first + ON_THE_WAY * mine.step; row < from.n; row += mine.step)
    ((i64*)to.time)[row] = from.time[row];
}

__device__ __forceinline__ void land(const Order& order, const Bringing& mine) {
#pragma unroll
  for (int i = 0; i < ON_THE_WAY; ++i)
    if (mine.first + i * mine.step < order.given.n)
      ((i64*)order.batch.time)[mine.first + i * mine.step] = mine.time[i];
}

// The slots that the store will hold, `before` being what it holds.
__device__ __forceinline__ i64 slots_after(const Work& w, u32 before) {
  return i64(before) + w.report[INSERTED] - w.report[DELETED];
}

// Whether a located batch can be planned: the store keeps its levels, and is not merged.
__device__ __forceinline__ bool stays(const Order& order, u32 before) {
  i64 after = slots_after(order.work, before);
  int m = order.store.m;
  u32 root = bound_of(m, 1);
  return order.leaf_cost * order.work.report[TOUCHED] <= order.most_cost &&
         (after <= i64(before) || after <= order.bounds.most[root]) &&
         (!m || after >= order.bounds.least[root]);
}

// Whether a planned batch can be moved.
__device__ __forceinline__ bool is_worth_it(const Order& order) {
  const i64* report = order.work.report;
  double cost = order.leaf_cost * report[TOUCHED] + order.window_cost * report[HELD_ABOVE];
  return cost <= order.most_cost && report[LARGE_SLOTS] <= order.scratch_slots;
}

// Plan the batch, or leave no trace of it.
__device__ bool plan(const Order& order) {
  add_changes(order.store, order.work, 1);
  grid_sync();
  choose(order.store, order.work, order.bounds);
  grid_sync();
  if (is_worth_it(order)) return true;
  add_changes(order.store, order.work, -1);
  return false;
}

// Tell the host; by one block, the last, which has the least to do.
__device__ void tell(const Order& order, Verdict verdict) {
  if (blockIdx.x + 1 < gridDim.x) return;
  volatile i64* answer = order.answer;
  for (u32 word = threadIdx.x; word < REPORT_WORDS; word += THREADS)
    answer[ANSWER_HEAD + word] = order.work.report[word];
  if (threadIdx.x == 0) {
    answer[2] = verdict;
    if (verdict == REFUSED) *order.work.gate = 1;
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) answer[1] = order.ticket;
}

static_assert(REPORT_WORDS <= THREADS, "a thread a word");

extern "C" __global__ void __launch_bounds__(THREADS, SEGMENT <= 32 ? 3 : 1)
    apply_batch(const __grid_constant__ Order order) {
  extern __shared__ char shared[];
  const Work& w = order.work;
  if (*w.gate) return tell(order, SKIPPED);
  if (blockIdx.x == 0 && threadIdx.x < REPORT_WORDS) order.next_report[threadIdx.x] = 0;
  __shared__ u64 top[1 << TOP_LAYERS];
  Source source = source_of(order.lo, order.hi, order.direction, order.checked, 0);
  Bringing mine = rows_to_bring(order, source.n);
  auto meanwhile = [&] {
    load_top(order.store, top);
    bring_in(order, mine);
  };
  sort_by_rank(order.given, w, source, shared, meanwhile, [&] { land(order, mine); });
  if (is_bad(w)) return tell(order, REFUSED);
  if (blockIdx.x + 1 == gridDim.x && threadIdx.x == 0) *(volatile i64*)order.answer = order.ticket;
  u32 before = order.store.counts[1];
  locate_all(order.store, order.batch, w, top, false, true);
  grid_sync();
  bool applies = true, moves = w.report[TOUCHED];
  if (moves) applies = stays(order, before) && plan(order);
  if (!applies || !moves) return tell(order, applies ? APPLIED : REFUSED);
  bool counts = w.report[WINDOWS] && !order.bounds.top_down;
  if (counts) count_redundant(order.store, w, order.bounds);  // a figure that is told, too
  if (!counts) tell(order, APPLIED);
  Moving moving = {order.store, order.batch, w, order.scratch, row_keys(w), row_places(w), 0, 0};
  write_changes(w, moving.keys, order.changed, order.inserted);
  move_all_leaves(moving, (Leaves*)shared);
  if (!w.report[WINDOWS]) return;
  grid_sync();
  if (counts) tell(order, APPLIED);
  move_all_windows(moving, shared, order.bounds.top_down);
}
