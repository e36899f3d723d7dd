"""Algorithms on snapshots, beside other libraries and, on a CUDA device, beside published figures.

traversal.py    components, BFS and PageRank
structure.py    strong components, shortest paths, Jaccard, clustering
triangles.py    triangles
diversity.py    structural diversity of large graphs on a device
bicliques.py    butterflies, and small bicliques through the public functions
tracker.py      figures kept from batch to batch, beside starting over
libraries.py    how other libraries are asked for the same
graphs.py       the graphs, as undirected snapshots
"""
