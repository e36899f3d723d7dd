"""Clusters: what they cost, and a model of it.

rates.py       shards beside independent pipelines, in threads and on Ray; epochs, supersteps, and a
               shard that is killed
shards.py      sharded streams, and the logs they come from
gpu.py         shards on the devices of one host
model.py       the cost model: seconds, bytes and memory
counts.py      what programs exchange, by formulas
drawn.py       graphs in shards, drawn where a shard lies
predicted.py   its constants, measured, and its predictions beside what is measured
plan.py        a plan for 10^11 edges
"""
