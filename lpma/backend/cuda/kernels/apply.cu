// A batch applied by one launch: sorted, located, planned, moved.
//
// Idea: the steps of rank.cuh, locate.cuh, judge.cuh, choose.cuh, leaves.cuh and windows.cuh are
// separated by a barrier over the grid (a microsecond) instead of a launch. It is for small batches,
// which latency bounds; a large one is faster with as many blocks as each step takes, and with
// columns that arrive while it is located (plan.cu).
//
// Requires: a report of zeros; all columns there; a cooperative launch.
#include "lpma/backend/cuda/kernels/leaves.cuh"
#include "lpma/backend/cuda/kernels/locate.cuh"
#include "lpma/backend/cuda/kernels/order.cuh"
#include "lpma/backend/cuda/kernels/rank.cuh"
#include "lpma/backend/cuda/kernels/windows.cuh"

constexpr int ON_THE_WAY = 2;

// A thread's rows (`first`, `first` + `step`, …), and the times of some of them, whose loads are
// under way while the thread does something else.
struct Bringing {
  i64 first, step;
  i64 time[ON_THE_WAY];
};

// The rows that a thread copies: the blocks without a tile to sort share them, unless those are few.
__device__ __forceinline__ Bringing rows_to_bring(const Order& order, i64 keys) {
  i64 tiles = min((keys + TILE_ROWS - 1) / TILE_ROWS, i64(gridDim.x)), idle = gridDim.x - tiles;
  i64 blocks = 2 * idle < gridDim.x ? gridDim.x : idle, block = gridDim.x - 1 - blockIdx.x;
  bool brings = block < blocks && (order.given.src != order.batch.src || !order.checked);
  return {brings ? block * THREADS + threadIdx.x : order.given.n, blocks * THREADS, {}};
}

// Copy to the device what later steps read of the batch, which may lie in the host's memory, and
// validate weights. The number of reads from the host's memory decides how long it takes. Times are
// needed last: `land` waits for them.
__device__ __forceinline__ void bring_in(const Order& order, Bringing& mine) {
  const Batch &from = order.given, &to = order.batch;
  bool copies = from.src != to.src;
  for (i64 row = mine.first; row < from.n; row += mine.step) {
    double weight = weight_of(from, row);
    if (copies && to.kind) ((u8*)to.kind)[row] = kind_of(from, row);
    if (!order.checked && !is_weight(from, weight) && is_weighted(kind_of(from, row)))
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

extern "C" __global__ void __launch_bounds__(THREADS, SEGMENT <= 32 ? 3 : 1)
    apply_batch(const __grid_constant__ Order order) {
  extern __shared__ char shared[];
  const Work& w = order.work;
  if (*w.gate) return tell(order, SKIPPED);
  clear_next_report(order);
  __shared__ u64 top[1 << TOP_LAYERS];
  Source source = source_of(order.given.n, order.direction, order.checked, 0);
  Bringing mine = rows_to_bring(order, source.n);
  auto meanwhile = [&] {
    load_top(order.store, top);
    bring_in(order, mine);
  };
  sort_by_rank(order.given, w, source, shared, meanwhile, [&] { land(order, mine); });
  if (is_bad(w)) return tell(order, REFUSED);
  tell_good(order);
  u32 before = order.store.counts[1];
  locate_all(order.store, order.batch, w, top, true);
  grid_sync();
  bool applies = true, moves = w.report[TOUCHED];
  if (moves) applies = stays(order, before) && plan(order);
  if (!applies || !moves) return tell(order, applies ? APPLIED : REFUSED);
  bool counts = w.report[WINDOWS] && !order.bounds.top_down;
  if (counts) count_redundant(order.store, w, order.bounds);  // a figure that is told, too
  if (!counts) tell(order, APPLIED);
  Moving moving = {order.store, order.batch, w, order.scratch, row_keys(w), false};
  write_changes(w, moving.keys, order.changed, order.inserted);
  move_all_leaves(moving, (Leaves<LEAVES_AT_ONCE>*)shared);
  if (!w.report[WINDOWS]) return;
  grid_sync();
  if (counts) tell(order, APPLIED);
  move_all_windows(moving, shared, order.bounds.top_down);
}
