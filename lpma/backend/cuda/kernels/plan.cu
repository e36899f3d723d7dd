// Planning a located batch, and taking a plan back: judge.cuh and choose.cuh as kernels by themselves.
//
// Judging writes the counts of windows as they will be after the batch. `rollback_batch` takes that
// back where the batch is not carried out.
//
// Requires: a located batch (locate.cu); a cooperative launch.
#include "lpma/backend/cuda/kernels/choose.cuh"

// Plan a located batch.
extern "C" __global__ void __launch_bounds__(THREADS)
    plan_batch(const __grid_constant__ Store s, const __grid_constant__ Work w,
               const __grid_constant__ Bounds bounds) {
  if (is_bad(w)) return;
  add_changes(s, w, bounds.sign);
  grid_sync();
  choose(s, w, bounds);
  if (bounds.top_down) return;
  grid_sync();
  if (w.report[WINDOWS]) count_redundant(s, w, bounds);
}

// Set the counts back to what they were before plan_batch.
extern "C" __global__ void __launch_bounds__(THREADS)
    rollback_batch(const __grid_constant__ Store s, const __grid_constant__ Work w,
                   const __grid_constant__ Bounds bounds) {
  if (!is_bad(w)) add_changes(s, w, bounds.sign);
}

// Move a located batch to a store that has grown by `levels` since: rank i is i << levels there.
extern "C" __global__ void __launch_bounds__(THREADS)
    shift_ranks(const __grid_constant__ Work w, int levels) {
  for (u64 i = thread_number<THREADS>(); i < w.report[TOUCHED]; i += thread_count<THREADS>())
    w.touched[i] <<= levels;
  for (u64 i = thread_number<THREADS>(); i < w.report[ACTIONS]; i += thread_count<THREADS>())
    w.rank[w.row[i]] <<= levels;
}
