"""Where operations come from: the base of all sources, a file, and the embedded log."""

from ..types import DEAD_LETTERS, QUERIES, REPLIES, UPDATES, Partition, Polled, Rejected
from .base import Identity, Source
from .files.source import FileSource
from .sqlite.log import SqliteLog

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
