"""The figures of the paper on the leveled packed-memory array.

growth.py       Figures 8 to 11 and 13 on a device: a store that grows batch by batch
batches.py      Figures 12 and 14: transfer against update, and the export of a CSR
opera.py        Figure 16: batches with queries among the updates
expansion.py    on the CPU, what a batch that expands moves: Figure 8 and Lemma 1
latency.py      on the CPU, the time of each batch, and rebalances done twice: Figures 1, 9 and 10
"""
