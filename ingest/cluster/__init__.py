"""A graph past one machine: shards, each a pipeline over its own partitions of one log.

From a topic to a shard. `lpma repartition` (`repartition.py`) or a producer's own `PartitionedSink`
(`partitioned.py`) writes each row to the partition of its vertex's owner: `owners.py` says whose it
is, `routing.py` which rows go where. A `Shard` (`shard.py`) reads its partitions (`cluster_log.py`)
through an `EpochSource`, which stops at markers, into a `Pipeline` of `ingest/pipeline`.
`topics.py` notes what a topic is written as; `removals.py` removes vertices where a shard reads
several partitions.

When a shard dies. Its `ShardSupervisor` (`supervisor.py`) makes another one, which resumes: from
its checkpoint, its journal and the log, as any pipeline does. Where its process died with it, the
engine starts that again: Ray (`ray_engine.py`), or whoever started `lpma cluster run`, whose
threads the shards are with `LocalEngine` (`engine.py`). If its disk is gone, `checkpoint_mirror.py`
brings back a copy from `storage.py`. Meanwhile the others go on; whoever asks the whole, waits.

A state of the whole. Each shard takes checkpoints by itself, and they need not fit together: the
log makes up for what they lack. What spans shards is an epoch: the `Coordinator` has a marker of
one number written to every partition; each shard stops there, and its `EpochLog` holds a snapshot;
together they are a `ShardedSnapshot`, which `client.py` and the algorithms read, on Ray by way of
`reply_boxes.py`.

`cluster.py` is the public interface, and `control.py` how other processes of the host reach it.
`spec.py` and `status.py` are what is sent about: what a shard is made of, and how it stands.
`cluster_manifest.py` and the locks of `control.py` keep apart what does not belong together.
"""
