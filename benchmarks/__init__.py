"""One runner for every figure that the documentation quotes: `python -m benchmarks NAME ...`.

experiments.py  the names, and the function behind each
stopwatch.py    the one stopwatch: rivals take turns, every sample kept, every result verified
report.py       tables, and JSON with all samples
machine.py      what a run was measured on: commit, processor, device, versions
plots.py        plots
compare.py      this tree beside another one, in turns
stores/         what a store is compared by on the CPU and on a device; the other stores
algorithms/     algorithms beside other libraries and published figures
papers/         the figures and tables of the five papers
streams/        pipelines: from memory, from the embedded log, from Kafka; checkpoints, live queries
workloads.py    streams of edges: a part to load, and what follows
keys.py         edges as 64-bit keys
model.py        what a store must hold, to check it
gpu/            what experiments on a CUDA device share: streams, our controls, the race
cuda/           the kernels of the controls
"""
