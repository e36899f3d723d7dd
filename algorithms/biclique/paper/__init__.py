"""The GBC paper's own search (Qiu et al., arXiv 2403.07858), chosen by `gbc.GbcOptions.rows`.

truncated.py                      hierarchical truncated bitmaps, and plain rows in the same form
truncated_cpu.py, truncated.cu    search them

The paper's order of vertices, Border, is in benchmarks/papers/border.py.
"""
