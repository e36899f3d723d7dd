"""Our own opponents on a CUDA device, where no other store can be installed
(docs/development/benchmarks.md).

flat_merge        one flat sorted array, merged with every batch
contiguous_pma    a packed-memory array in one piece, in GPMA+'s manner
radix_sort        the sort that both use
packed.py         batches in pinned memory, as both take them
"""
