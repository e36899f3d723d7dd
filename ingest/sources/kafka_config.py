"""The former place of `ingest.sources.kafka.config`, whose names stay importable from here."""

from .kafka.config import *  # noqa: F403
