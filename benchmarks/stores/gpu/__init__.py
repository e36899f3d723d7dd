"""Stores on a CUDA device, beside our controls. CuPy is imported inside functions, never on import.

base.py       ours and the controls behind the same few methods
race.py       load, insert, delete: latency, period, slowest, all verified
lock.py       how long a batch holds up other Python threads
updates.py    insertions and deletions, by batch size
queries.py    edges and successors
scaling.py    a graph on each device
vertices.py   vertices added and removed
memory.py     bytes an edge through 1000 batches
"""
