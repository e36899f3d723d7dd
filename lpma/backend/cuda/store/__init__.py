"""A store's memory on a CUDA device.

segments.py        one shape of a store: its levels, fences and counts
shapes.py          stores made, grown, spread, shrunk
virtual_memory.py  levels that get their memory part by part
work.py            the buffers of a batch, and what kernels report of it
"""
