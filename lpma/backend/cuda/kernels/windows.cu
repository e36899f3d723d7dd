// The mover's second half, windows.cuh, as a kernel by itself.
#include "lpma/backend/cuda/kernels/windows.cuh"

// Carry out the windows of a plan, whose leaves have been moved (leaves.cu).
extern "C" __global__ void __launch_bounds__(THREADS)
    move_windows(const __grid_constant__ Store s, const __grid_constant__ Batch b,
                 const __grid_constant__ Work w, const __grid_constant__ Columns scratch,
                 int top_down) {
  extern __shared__ char shared[];
  if (*w.gate) return;
  Moving moving = {s, b, w, scratch, row_keys(w), false};
  move_all_windows(moving, shared, top_down);
}

// Spread windows from … to - 1 of a layer evenly, of a store that has got a part of a level more.
extern "C" __global__ void __launch_bounds__(THREADS)
    even_out(const __grid_constant__ Store s, int layer, u32 from, u32 to) {
  extern __shared__ char shared[];
  Batch b = {};  // none is under way
  Work w = {};
  Moving moving = {s, b, w, {}, nullptr, true};
  even_out_windows(moving, shared, layer, from, to);
}
