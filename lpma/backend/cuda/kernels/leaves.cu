// The mover's first half, leaves.cuh, as a kernel by itself.
#include "lpma/backend/cuda/kernels/leaves.cuh"

// Move the leaves, and note the changes for the history.
extern "C" __global__ void __launch_bounds__(THREADS, SEGMENT <= 32 ? 4 : 1)
    move_leaves(const __grid_constant__ Store s, const __grid_constant__ Batch b,
                const __grid_constant__ Work w, u64* changed, u8* inserted) {
  extern __shared__ char shared[];
  if (*w.gate) return;
  Moving moving = {s, b, w, {}, row_keys(w), false};
  write_changes(w, moving.keys, changed, inserted);
  move_all_leaves(moving, (Leaves<LEAVES_A_WARP>*)shared);
}
