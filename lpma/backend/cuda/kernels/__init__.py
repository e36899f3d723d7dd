"""The CUDA sources of a store. Those that are launched are `*.cu`; `*.cuh` are their parts."""
