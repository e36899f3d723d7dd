"""What a batch does to a store on a CUDA device.

fused.py         all of a batch in one launch, or five: the device decides. launch_block.py has the
                 arguments of its kernels, and the words of their answer
stepwise.py      step by step, with a look at the device's report in between: mixed batches, and
                 what the device refused
single.py        one operation, in plain numbers
located.py       what a batch is in between: key operations, what they do, a plan
changes.py       room for the keys that it inserts and deletes
"""
