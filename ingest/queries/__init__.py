"""Live queries: the client that asks, the pipeline's answers, and where replies are written."""
