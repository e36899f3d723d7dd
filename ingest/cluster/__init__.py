"""Past one machine: a graph in shards, each a pipeline over its own partitions of one stream."""
