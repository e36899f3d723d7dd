"""Where operations come from: one small protocol, and the sources that follow it."""

from .base import Identity, Partition, Polled, Rejected, Source
from .files.source import FileSource
from .sqlite.log import DEAD_LETTERS, QUERIES, REPLIES, UPDATES, SqliteLog

__all__ = [
    "DEAD_LETTERS",
    "QUERIES",
    "REPLIES",
    "UPDATES",
    "FileSource",
    "Identity",
    "Partition",
    "Polled",
    "Rejected",
    "Source",
    "SqliteLog",
]
