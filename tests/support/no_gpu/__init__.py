"""The CUDA backend's host logic without a device: who reads and writes which memory, and in what
order.

Copies, kernels and the host itself take turns only where an event or a wait says so. On a device, a
wait that is missing mostly does no harm: the copy is over anyway. So here nothing is computed.
`stand_in` takes CuPy's place, `kernels` that of the store's kernels, which say what they would read
and write, and `clocks` finds two uses of the same memory that nothing orders. `drive` feeds a graph
with batches of all kinds.

It runs in a process of its own, since the backend keeps the CuPy that it imports."""
