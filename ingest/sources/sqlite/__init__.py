"""The embedded log: topics and partitions in one SQLite file, for machines without a broker."""
