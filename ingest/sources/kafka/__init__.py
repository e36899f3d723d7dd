"""Kafka as a source and as a sink. `config` and `batches` do without kafka-python."""
