"""What algorithms read a graph as: the simple undirected view, the directed one, the transpose."""
