"""The SQLite file behind `SqliteLog`: its tables, its transactions, its errors.

    info        key, value                            "cluster": a uuid made at creation
    topics      name, id, partitions                  id: a uuid, new when a topic is re-created
    partitions  key, topic, number, first, next       offsets kept are first … next − 1
    records     id, part, offset, value               part: a partition's key

Trick: the file says whose it is (`application_id`) and in which format (`user_version`), so a file
of something else is refused before anything is written to it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import SourceError

_APPLICATION = 0x4C504D41  # "LPMA"
_FORMAT = 1

_SCHEMA = (
    "CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE topics (name TEXT PRIMARY KEY, id TEXT NOT NULL, partitions INTEGER NOT NULL)"
    " WITHOUT ROWID",
    "CREATE TABLE partitions (key INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL,"
    " number INTEGER NOT NULL, first INTEGER NOT NULL, next INTEGER NOT NULL,"
    " UNIQUE (topic, number))",
    "CREATE TABLE records (id INTEGER PRIMARY KEY AUTOINCREMENT, part INTEGER NOT NULL,"
    " offset INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (part, offset))",
)

Execute = Callable[..., sqlite3.Cursor]


class LogFile:
    """The file `path`, laid out where it is new. One transaction at a time within a process;
    another process's is waited for, up to `timeout` seconds. What SQLite raises becomes
    SourceError."""

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.path = os.fspath(path)
        self._lock = threading.RLock()
        try:
            self.database = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise SourceError(f"{self.path}: cannot be opened as a log ({error})") from None
        try:
            with self._errors():
                self._lay_out()
                self.database.execute("PRAGMA synchronous = FULL")
        except BaseException:
            self.database.close()
            raise

    def close(self) -> None:
        with self._lock:
            self.database.close()

    def _lay_out(self) -> None:
        if self.one("PRAGMA application_id") == (0,):
            if self.one("SELECT count(*) FROM sqlite_master") != (0,):
                raise SourceError(f"{self.path}: a SQLite file of something else; choose another")
            self.database.execute("PRAGMA journal_mode = WAL")
            with self.transaction() as run:
                # Another process may have laid it out while this one waited for the lock.
                if self.one("PRAGMA application_id") == (0,):
                    for statement in _SCHEMA:
                        run(statement)
                    run("INSERT INTO info VALUES ('cluster', ?)", (str(uuid.uuid4()),))
                    run(f"PRAGMA user_version = {_FORMAT}")
                    run(f"PRAGMA application_id = {_APPLICATION}")
        if self.one("PRAGMA application_id") != (_APPLICATION,):
            raise SourceError(f"{self.path}: a SQLite file of something else; choose another")
        if self.one("PRAGMA user_version") != (_FORMAT,):
            raise SourceError(f"{self.path}: a log of another format than {_FORMAT}")

    def one(self, statement: str, *values: Any) -> Any:
        """The first row, or None."""
        with self._errors():
            return self.database.execute(statement, values).fetchone()

    def state(self) -> tuple[int, int]:
        """Another value whenever something was written, here or by another process. Ten times
        quicker than to look what."""
        (version,) = self.one("PRAGMA data_version")
        return version, self.database.total_changes

    def all(self, statement: str, *values: Any) -> list[Any]:
        with self._errors():
            return self.database.execute(statement, values).fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise SourceError(f"{self.path}: the log failed ({error})") from error

    @contextmanager
    def transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[Execute]:
        """What the block runs happens as one, or not at all."""
        with self._errors():
            self.database.execute(begin)
            try:
                yield self.database.execute
                self.database.execute("COMMIT")
            except BaseException:
                if self.database.in_transaction:
                    self.database.execute("ROLLBACK")
                raise
