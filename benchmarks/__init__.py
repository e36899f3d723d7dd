"""One runner for every figure that the documentation quotes: `python -m benchmarks NAME ...`.

headline.py       what a user asks first: the rows of docs/performance.md
results/          what `headline` found, a file a machine
page.py           docs/performance.md, made of these files
experiments.py    the names, and the function behind each
stopwatch.py      the one stopwatch: rivals take turns, every sample kept, every result verified
report.py         tables, and JSON with all samples
machine.py        what a run was measured on: commit, processor, device, versions
device.py         whether there is a CUDA device, and our own kernels on it
plots.py          plots
compare.py        this tree beside another one, in turns
stores/           what a store is compared by on the CPU and on a device; the other stores
controls/         our own opponents on a device
algorithms/       algorithms beside other libraries and published figures
papers/           the figures and tables of the five papers
streams/          pipelines: from memory, from the embedded log, from Kafka; checkpoints, queries
cluster/          shards: what they cost, and a model of it
workloads.py      streams of edges: a part to load, and what follows
workloads_gpu.py  the same, drawn on a device
keys.py           edges as 64-bit keys
model.py          what a store must hold, to check it
"""
