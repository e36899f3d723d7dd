"""The packed-memory array as the paper has it, without arrays: keys, layout, densities,
strategy, counters."""
