"""Bicliques: (p, q) of them counted, listed, kept up to date over bipartite graphs."""
