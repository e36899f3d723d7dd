"""NetworkX's backend "lpma": `nx.core_number(G, backend="lpma")`.

NetworkX finds two things here by entry points: what the backend serves, whenever NetworkX is
imported, and the functions, on first use. The first must cost next to nothing, since everyone who
has lpma installed pays for it: info.py, this file and the one above it import nothing.

info.py         what is served: the table that drives all else here; `get_info`
backend.py      what NetworkX calls: its functions under its names, conversion, can_run, should_run
refusals.py     which calls are left to NetworkX, and why
converted.py    a NetworkX graph as a snapshot, which NetworkX keeps with the original
  convert.py    NetworkX's dictionaries as rows

The functions adapt labels, names of arguments, errors, types and order to NetworkX's; they compute
by the other folders, or by a library. What they return is in NetworkX's documentation; docstrings
here say what is not.

cores.py        cores, shells, crusts and trusses
clusters.py     triangles, clustering, transitivity; squares, and triangles by direction
components.py   connected components, weak and strong
degrees.py      degree centralities, isolated nodes, reciprocity
ranks.py        PageRank; HITS by SciPy
traversal.py    breadth-first edges, trees and layers, in NetworkX's order
lengths.py      lengths of shortest paths, in edges and by weight
links.py        link prediction: Jaccard and its kin

Oracle: NetworkX itself, function by function (tests/algorithms/test_networkx_results.py).
"""
