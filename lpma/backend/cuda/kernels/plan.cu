// Planning a located batch: judge.cuh and choose.cuh as kernels by themselves.
//
// Requires: a located batch (locate.cu); a cooperative launch.
#include "lpma/backend/cuda/kernels/order.cuh"

// Plan a large batch, and decide whether it is applied as planned. sort.cu and locate.cu run before,
// leaves.cu and windows.cu after, and the host launches all at once. If the batch is refused, the
// gate is closed, and the movers do nothing (order.cuh). REQUIRES: the host has checked and sent the
// columns; a report of zeros before the batch was sorted.
extern "C" __global__ void __launch_bounds__(THREADS) decide(const __grid_constant__ Order order) {
  const Work& w = order.work;
  if (*w.gate) return tell(order, SKIPPED);
  clear_next_report(order);
  u32 before = order.store.counts[1];
  grid_sync();  // all have read the gate and the count
  if (is_bad(w)) return tell(order, REFUSED);
  tell_good(order);
  bool moves = w.report[TOUCHED], applies = !moves || (stays(order, before) && plan(order));
  if (applies && w.report[WINDOWS] && !order.bounds.top_down) {
    count_redundant(order.store, w, order.bounds);
    grid_sync();
  }
  tell(order, applies ? APPLIED : REFUSED);
}

// Plan a located batch: the counts of windows are then those after it. With sign -1, set them back.
extern "C" __global__ void __launch_bounds__(THREADS)
    plan_batch(const __grid_constant__ Store s, const __grid_constant__ Work w,
               const __grid_constant__ Bounds bounds) {
  if (is_bad(w)) return;
  add_changes(s, w, bounds.sign);
  if (bounds.sign < 0) return;
  grid_sync();
  choose(s, w, bounds);
  if (bounds.top_down) return;
  grid_sync();
  if (w.report[WINDOWS]) count_redundant(s, w, bounds);
}

// Move a located batch to a store that has grown by `levels` since: rank i is i << levels there.
extern "C" __global__ void __launch_bounds__(THREADS)
    shift_ranks(const __grid_constant__ Work w, int levels) {
  for (u64 i = thread_number<THREADS>(); i < w.report[TOUCHED]; i += thread_count<THREADS>())
    w.touched[i] <<= levels;
  for (u64 i = thread_number<THREADS>(); i < w.report[ACTIONS]; i += thread_count<THREADS>())
    w.rank[w.row[i]] <<= levels;
}
