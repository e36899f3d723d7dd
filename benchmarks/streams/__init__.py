"""Pipelines from a source into a store.

memory_source.py   records held in memory
processes.py       a process beside this one
records.py         JSON records, beside what one writes by hand
results.py         what tracked figures and their results cost
feed.py            what the edge feed costs, and how far a copy that follows it is behind
checkpoint.py      how long a stream stops for a checkpoint
gpu_pipeline.py    end to end into a store on a CUDA device, by stage
kafka.py           from a real Kafka, by stage
live_queries.py    how long a query takes while updates come
live_page.py       what the live page costs a browser
flood.py           the same when idle and beside a backlog, and what it costs the stream
"""
