"""The biclique paper's own search: truncated bitmaps, Border's order. Ours is one folder up."""
