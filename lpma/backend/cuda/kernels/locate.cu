// Find where each key operation of a sorted batch belongs, and what it does there: locate.cuh, as a
// kernel by itself.
#include "lpma/backend/cuda/kernels/locate.cuh"

// Four blocks a multiprocessor: with registers for more of them, it would keep some in memory.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    locate(const __grid_constant__ Store s, const __grid_constant__ Batch b,
           const __grid_constant__ Work w, int checked) {
  __shared__ u64 top[1 << TOP_LAYERS];
  if (*w.gate || has_bad_keys(w)) return;  // weights are looked at by whoever is first
  load_top(s, top);
  locate_all(s, b, w, top, checked);
}
