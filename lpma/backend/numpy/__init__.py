"""A store in NumPy alone: one sorted array, for the time until the compiled kernels are there.

backend.py is its entrance, and segments.py says how a sorted array is a leveled store. It gives the
same results as the Numba backend to the last bit; only the segments differ.

Requires: nothing here imports Numba, or what imports it.
"""
