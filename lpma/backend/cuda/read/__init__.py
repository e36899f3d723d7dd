"""Queries of a store on a CUDA device, and copies of what it holds.

reader.py     the order of streams, inputs and results; the batch beside the store
queries.py    edges, scans, slots
neighbors.py  neighbours and their numbers; hops.py goes on from there
snapshot.py   rows and columns of a CSR
ages.py       what is older than a time
"""
