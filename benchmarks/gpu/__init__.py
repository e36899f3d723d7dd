"""What the experiments on a CUDA device share. CuPy is imported inside functions, never on import.

device.py           whether there is a device, what it is, and our own kernels on it
streams.py          the graphs, drawn on the device
packed.py           batches in pinned memory, as the controls take them
flat_merge.py       control: one flat sorted array, merged with every batch
contiguous_pma.py   control: a packed-memory array in one piece, in GPMA+'s manner
stores.py           ours and the controls behind the same few methods
lock.py             how long a batch holds up other Python threads
race.py             load, insert, delete: latency, period, slowest, all verified
sort.py             the radix sort that both controls use
cluster.py          shards on the devices of one host
growth.py           a store that grows batch by batch from nothing
"""
