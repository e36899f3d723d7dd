"""Stores compared: updates, queries, exports, memory.

base.py         what a store must offer to be compared, and ours
peers.py        the other stores, behind the same few methods
updates.py      insertions and deletions, by batch size
merges.py       both settings of `global_merge`
queries.py      edges and successors
csr.py          the export of all edges
memory.py       bytes per edge
first_use.py    what a newcomer waits for
gpu_*.py        the same on a CUDA device; the controls there are benchmarks/gpu's
"""
