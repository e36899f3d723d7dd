"""What a batch, a query and a check do to the stores of a graph."""
