"""A stream that becomes a graph: `pipeline.py` is one step of it, the other files its parts."""
