"""Stores compared: updates, queries, exports, memory.

base.py         what a store must offer to be compared, and ours
peers.py        the other stores, behind the same few methods
updates.py      insertions and deletions, by batch size
sets.py         edges that are set beside the same inserted
mixed.py        insertions with queries among them
queries.py      edges and successors
csr.py          the export of all edges
memory.py       bytes per edge
first_use.py    what a newcomer waits for
small.py        small batches of real streams, and single operations
gpu/            the same on a CUDA device
"""
