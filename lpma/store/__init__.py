"""One leveled packed-memory array, and what it needs between batches."""
