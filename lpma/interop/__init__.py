"""Graphs from what callers have: columns, data frames, matrices, graphs of other libraries.

Each function makes a graph, fills it and returns it. Its keyword arguments are those of
`lpma.Graph`, but that `weight` means the weights themselves; their type is `weight_dtype` here, by
default "auto": "float64" if float32 would round weights of the type given (float64, or integers of
32 or 64 bits), else "float32", as for `lpma.Graph`. None: the graph keeps no weights.

Nothing is guessed in silence: what is not read is named by its caller, and what would be lost
(missing values, weights that no edge keeps, one of two directions) is refused. The way back is
`lpma.snapshot.export`. Other libraries are imported only if it is their data.
"""
