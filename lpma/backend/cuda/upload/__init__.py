"""How a batch gets to a CUDA device.

uploader.py      sends it, by one of the two blocks of blocks.py
staging.py       threads copy a large one to pinned memory
zero_copy.py     kernels read a small one where the host has it
staged_batch.py  what kernels are told of it
"""
