// Planning a large batch, and deciding whether it is applied as planned.
//
// Idea: sort.cu and locate.cu run before, leaves.cu and windows.cu after, and the host launches all at
// once. If the batch is refused, the gate is closed, and the movers do nothing (order.cuh).
//
// Requires: a located batch (locate.cu) whose columns the host has checked and sent; a report of zeros
// before it was sorted; a cooperative launch.
#include "lpma/backend/cuda/kernels/order.cuh"

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
