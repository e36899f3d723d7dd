"""One runner for every figure the documentation quotes: `python -m benchmarks NAME ... [--quick]`.

workloads.py     the graphs, as a part to load and a stream that follows it
keys.py          edges as 64-bit keys
model.py         what a store must hold, to check it
stores.py        what a store must offer to be compared, and ours
peers.py         the other stores, behind the same few methods
measure.py       the one stopwatch: rounds interleaved over the stores, every result verified
report.py        tables, JSON, plots
experiments/     one module an experiment, each with `run(setting)` -> a Report, or several
gpu/             what the experiments on a CUDA device share: streams, our controls, the race
cuda/            the controls' kernels
"""
