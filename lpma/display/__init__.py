"""Graphs and snapshots as a notebook or a prompt shows them: a line, or a table with two sketches.

Showing something must cost little. So nothing is counted that the store does not keep count of, and
of large graphs the degrees of some rows are drawn.
"""
