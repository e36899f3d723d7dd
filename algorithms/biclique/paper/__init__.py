"""The programs of the biclique paper, GBC (Qiu et al., arXiv 2403.07858), where they differ from
ours.

border      Border, an order of vertices in which truncated bitmaps have fewer words
truncated   hierarchical truncated bitmaps, and plain rows in the same form; truncated_cpu and
            truncated.cu search them

They are chosen by `gbc.GbcOptions`, as `gbc.GBC` and `gbc.GBL` do for the paper's tables.
"""
