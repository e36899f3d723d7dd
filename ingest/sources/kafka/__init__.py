"""Kafka as a source and as a sink. `config` and `batches` do not need kafka-python."""
