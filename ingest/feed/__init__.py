"""The edge feed: what every version of a graph changed, and copies that follow it.

content.py   what a version changed, as parts that are published (`results/publisher.py`)
writer.py    a pipeline's batches, watched and published beside the stream
source.py    a feed as the source of a pipeline, one batch a version
follower.py  `ingest.follow`: a copy of the graph at the writer's versions
"""
