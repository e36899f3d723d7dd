"""The CUDA backend without a device: its kernels run on the host.

The compiler of C++ takes our CUDA sources as they are: emulated.h has what they use of CUDA's
language. `build` compiles a file, and `cupy_on_host` takes CuPy's place: device memory is the
host's, and whatever a stream is asked for is done at once. So the kernels' logic is tested where
there is no device. Their speed is not, nor what depends on the order of streams (no_gpu).

It is slow: a batch of some thousands takes a tenth of a second. `fuzz` runs in a process of its
own, since the backend keeps the CuPy that it imports."""
