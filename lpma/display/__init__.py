"""Graphs and snapshots as a notebook or a prompt shows them: a line, or a table with two sketches.

Showing something must cost next to nothing. So what is counted is what the store keeps count of,
and of large graphs a sample is drawn: degrees of some rows, densities of some segments.
"""
