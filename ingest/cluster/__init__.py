"""Past one machine: a stream whose partitions are chosen by the owner of each vertex."""
