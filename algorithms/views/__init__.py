"""Views: what the algorithms read a graph as, built where the graph's arrays lie.

given.py          a matrix or (indptr, indices) as checked rows; a graph over shards
simple.py         `View`, and the simple undirected view: no loops, no repeats, both directions
directed.py       rows with their directions, the transpose, the weights, the vertices
cache.py          views kept with their Snapshot
following.py      views brought from one snapshot to the next
simple_cpu.py, transpose_cpu.py    how both are built on the CPU
unsorted_union_cpu.py              the simple view of a small graph on the CPU, its rows in no order
simple_cuda.py, unite.cu, transpose_cuda.py, transpose.cu    and on a CUDA device
simple.cu         dropping entries from rows there

Oracle: edges gathered in plain Python (tests/algorithms/test_views.py).
"""
