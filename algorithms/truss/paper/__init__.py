"""The K-truss slides' own program, chosen by `method="affected"`. Ours are one folder up.

Source: Ding, Duan and Liu, "K-truss decomposition", ECE508. For k = 3, 4, … every edge is affected.
Count the triangles of the affected edges; mark for deletion the edges with fewer than k - 2, and as
affected the other edges of their triangles; delete the marked edges, the *short update*; repeat,
until no edge is affected. Edges stay in their rows, deleted or not.

cpu.py                on the CPU
cuda.py, affected.cu  on a CUDA device, with the slides' kernels
"""
