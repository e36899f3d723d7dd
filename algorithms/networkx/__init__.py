"""NetworkX's backend "lpma": `nx.core_number(G, backend="lpma")`.

NetworkX finds two things here by entry points: what the backend serves, when NetworkX itself is
imported, and the functions, when one of them is first wanted. The first must cost next to nothing,
for everyone who has lpma installed pays for it: info.py imports nothing, and neither does this file
or the one above it.

info.py         what is served: one table, of which all else here is made; `get_info`
backend.py      what NetworkX calls: its functions under its names, conversion, can_run, should_run
refusals.py     when a call is better or only served by NetworkX itself, and why
converted.py    a NetworkX graph as a snapshot, kept beside the original by NetworkX
  convert.py    NetworkX's dictionaries as rows

The functions adapt: labels to rows and back, the names of arguments, NetworkX's errors, types and
order. What they compute is in the folders beside this one, and where a library has it, there:

cores.py        cores, shells, crusts and trusses
clusters.py     triangles, clustering, transitivity; square and directed clustering by wedges_cpu.py
components.py   connected components, weak and strong
degrees.py      degree centralities, isolated nodes, reciprocity
ranks.py        PageRank; HITS by SciPy
traversal.py    breadth-first edges, trees and layers, in NetworkX's order (ordered_cpu.py)
lengths.py      lengths of shortest paths, in edges and by weight
links.py        link prediction: Jaccard and its kin

Oracle: NetworkX itself, function by function (tests/algorithms/test_networkx_results.py).
"""
