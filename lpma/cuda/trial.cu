// A kernel that needs what every kernel of ours needs: NVRTC, CUDA's headers, a cooperative launch.
// `lpma doctor` runs it to find out whether a device can be used.
#include "lpma/cuda/grid.cuh"

extern "C" __global__ void trial(i32* x) {
  grid_sync();
  *x = 1;
}
