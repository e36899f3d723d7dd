"""Where operations come from: the base of all sources, a file, and the embedded log."""

from ..types import Partition, Polled, Rejected
from .base import Identity, Source
from .files.source import FileSource
from .sqlite.log import SqliteLog

__all__ = [
    "FileSource",
    "Identity",
    "Partition",
    "Polled",
    "Rejected",
    "Source",
    "SqliteLog",
]
