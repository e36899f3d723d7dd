"""A batch of operations: as columns, made operation by operation, by name."""
