"""The SQLite file behind `SqliteLog`: its tables, its transactions, its errors.

    info        key, value                            "cluster": a uuid made at creation
    topics      name, id, partitions                  id: a uuid, new when a topic is re-created
    partitions  key, topic, number, first, next       offsets kept are first … next − 1
    records     id, part, offset, value, time, key    part: a partition's key; time: when it was
                                                      written, ms since 1970 (0: by format 1);
                                                      value: the empty text, not bytes, of a record
                                                      without one; key: of format 3, or NULL

Tricks: the file says whose it is (`application_id`) and in which format (`user_version`), so a file
of something else is refused before anything is written to it. Format 1 had no times; it becomes
format 2 where it is opened. Format 2 has no keys; it becomes format 3 with the first record that
has one, or no value, so that a log without stays readable by older releases.

A log appears whole, or not at all, however many processes make it and whenever they die:

    1. lay it out in a new file next to the target, `.<name>.<random>.tmp`
    2. close it, so that SQLite leaves one file, and fsync that
    3. link it to the name, which fails if the name is taken: then the winner's log is used
    4. fsync the directory, so that the name lasts; remove the temporary name

A crash before step 3 leaves a stray that nothing reads. An empty file or an empty database at the
name, such as a crash of an earlier release left, is not a log to a reader; whoever makes the log
lays it out in place, in one transaction.

Without permission to write, a file in write-ahead mode cannot be read just so: its reader shares
the index of the write-ahead log, the file `-shm`, with writers, and makes it where there is none.
What is done then depends on what lies beside the file:

    no -wal          nobody has it open: it is read as a file that does not change (`immutable`).
                     Should somebody write to it all the same, each read notices and raises.
    -wal and -shm    somebody has it open, or died: both are read, and written by nobody here
    -wal alone       the index would have to be written: refused

Invariant: within a process, a file is open either to be written or to be only read. A handle on an
unchanging file knows nothing of others, and closing it would release SQLite's locks of these
(POSIX); and the index is shared by all handles of a process as the first of them opened it.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from lpma.file.atomic import fsync_directory
from lpma.host import sync

from ...errors import SourceError

MEMORY = ":memory:"  # instead of a path: a log of one process, in no file
_APPLICATION = 0x4C504D41  # "LPMA"
_FORMAT = 2  # of a new file
_WITH_KEYS = 3
_SIDE_FILES = ("-wal", "-journal")  # of SQLite, which it would apply to whatever has the name
# On macOS SQLite syncs as far as `lpma.host.sync` only if it is told to; elsewhere this is nothing.
_FULL_SYNCS = ("PRAGMA fullfsync = 1", "PRAGMA checkpoint_fullfsync = 1")
_WAIT_S = 0.001  # between two tries at a file that another process looks at

_SCHEMA = (
    "CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE topics (name TEXT PRIMARY KEY, id TEXT NOT NULL, partitions INTEGER NOT NULL)"
    " WITHOUT ROWID",
    "CREATE TABLE partitions (key INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL,"
    " number INTEGER NOT NULL, first INTEGER NOT NULL, next INTEGER NOT NULL,"
    " UNIQUE (topic, number))",
    "CREATE TABLE records (id INTEGER PRIMARY KEY AUTOINCREMENT, part INTEGER NOT NULL,"
    " offset INTEGER NOT NULL, value BLOB NOT NULL, time INTEGER NOT NULL DEFAULT 0,"
    " UNIQUE (part, offset))",
)
_TO_FORMAT_2 = "ALTER TABLE records ADD COLUMN time INTEGER NOT NULL DEFAULT 0"
_TO_FORMAT_3 = "ALTER TABLE records ADD COLUMN key BLOB"

Execute = Callable[..., sqlite3.Cursor]


class NoLog(SourceError):
    """There is no log at a path, and no other file either."""


class LogFile:
    """The log in the file `path`, which writable=False leaves as it is: see above. One
    transaction at a time within a process; another process's is waited for, up to `timeout`
    seconds. What SQLite raises becomes SourceError.

    Raises NoLog if there is none yet (`make_log` makes one), SourceError on anything else."""

    def __init__(self, path: str, timeout: float, writable: bool = True) -> None:
        self.path = path
        self._is_unchanged: Callable[[], bool] = lambda: True
        self._has_keys = False
        self._lock = threading.RLock()
        if path != MEMORY and not os.path.exists(path):
            raise NoLog(_missing(path))
        claim(path, writable)
        try:
            mode = "rw"
            if not writable:
                mode, self._is_unchanged = mode_to_read(path)
            self.database = _connect(path, timeout, mode)
        except BaseException:
            release(path, writable)
            raise
        self._release: Callable[[], None] | None = partial(release, path, writable)
        try:
            if path == MEMORY:
                _lay_out(self.database, timeout)
            with self._errors():
                self._check(writable)
                self.database.execute("PRAGMA synchronous = FULL")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with self._lock:
            self.database.close()
            if self._release is not None:
                self._release()
            self._release = None

    def _check(self, writable: bool) -> None:
        with self.transaction("BEGIN"):
            if _is_empty(self.database):
                raise NoLog(_missing(self.path))
            if self.one("PRAGMA application_id") != (_APPLICATION,):
                raise SourceError(f"{self.path}: a SQLite file, but not a log; choose another")
            (version,) = self.one("PRAGMA user_version")
        if version == 1 and writable:
            with self.transaction() as run:
                if self.one("PRAGMA user_version") == (1,):  # no other process was faster
                    run(_TO_FORMAT_2)
                    run("PRAGMA user_version = 2")
        elif version not in (_FORMAT, _WITH_KEYS):
            mended = ": one start with write permission brings it up to date"
            raise SourceError(
                f"{self.path}: a log of format {version}, but this release reads {_FORMAT} and "
                f"{_WITH_KEYS}{mended * (version == 1)}"
            )

    def has_keys(self, run: Execute) -> bool:
        """Whether records may have keys. Another process may have changed that."""
        if not self._has_keys:
            self._has_keys = run("PRAGMA user_version").fetchone() == (_WITH_KEYS,)
        return self._has_keys

    def add_keys(self, run: Execute) -> None:
        """Let records have keys from now on. REQUIRES: a transaction that writes."""
        if not self.has_keys(run):
            run(_TO_FORMAT_3)
            run(f"PRAGMA user_version = {_WITH_KEYS}")

    def one(self, statement: str, *values: Any) -> Any:
        with self._errors():
            return self.database.execute(statement, values).fetchone()

    def state(self) -> tuple[int, int]:
        """A value that changes whenever something is written, here or by another process. Reading
        it is ten times quicker than looking for new records."""
        (version,) = self.one("PRAGMA data_version")
        return version, self.database.total_changes

    def all(self, statement: str, *values: Any) -> list[Any]:
        with self._errors():
            return self.database.execute(statement, values).fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with self._lock, _said(self.path):
            try:
                yield
            finally:
                if not self._is_unchanged():
                    raise SourceError(
                        f"{self.path}: was written while it was read without write permission: "
                        "ask again"
                    )

    @contextmanager
    def transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[Execute]:
        """What the block runs happens as one, or not at all."""
        with self._errors(), _transaction(self.database, begin):
            yield self.database.execute


def make_log(path: str, timeout: float) -> None:
    """Make a log in the file `path`; does nothing if there is one. Raises SourceError if
    the file is something else, or cannot be made."""
    try:
        if not os.path.exists(path):
            _make_file(Path(os.path.realpath(path)), timeout)
    except OSError as error:
        raise SourceError(
            f"{path}: a log cannot be made there ({error}): it needs a directory that can be "
            "written, on a local file system with hard links"
        ) from None
    with closing(_connect(path, timeout)) as database, _said(path):
        if _is_empty(database):
            _lay_out(database, timeout)


def _make_file(path: Path, timeout: float) -> None:
    """Make the file, or let another process have made it."""
    stem = os.fsdecode(os.fsencode(path.name)[:200])
    temporary = path.with_name(f".{stem}.{secrets.token_hex(8)}.tmp")
    try:
        with closing(_connect(str(temporary), timeout, "rwc")) as database, _said(str(temporary)):
            _lay_out(database, timeout)  # 1
        file = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)  # 2
        try:
            sync(file)
        finally:
            os.close(file)
        if not _is_there(path):
            with suppress(FileExistsError):
                os.link(temporary, path)  # 3
        fsync_directory(path.parent)  # 4: the winner may not have done so
    finally:
        temporary.unlink(missing_ok=True)
        for suffix in (*_SIDE_FILES, "-shm"):
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    """Whether another process has made the log. Raises SourceError if the log is gone and what
    it left behind would be applied to the next one of that name."""
    # Looked for before the log: a log is always there before SQLite puts these next to it.
    left = [f"{path}{suffix}" for suffix in _SIDE_FILES if os.path.exists(f"{path}{suffix}")]
    if os.path.lexists(path):
        return True
    if left:
        raise SourceError(
            f"{left[0]}: was left by a log that is gone: put that back beside it, or remove this"
        )
    return False


def _lay_out(database: sqlite3.Connection, timeout: float) -> None:
    """Make a log of an empty database, unless another process does."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait for this lock, which others hold while they look.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_WAIT_S)
    with _transaction(database):
        if _is_empty(database):
            for statement in _SCHEMA:
                database.execute(statement)
            database.execute("INSERT INTO info VALUES ('cluster', ?)", (str(uuid.uuid4()),))
            database.execute(f"PRAGMA user_version = {_FORMAT}")
            database.execute(f"PRAGMA application_id = {_APPLICATION}")


def _is_empty(database: sqlite3.Connection) -> bool:
    """Whether nothing was ever put there. One statement, and so one state of the file."""
    found = database.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), count(*) FROM sqlite_master"
    ).fetchone()
    return bool(found == (0, 0))


def _connect(path: str, timeout: float, mode: str = "rw") -> sqlite3.Connection:
    """Without making the file, unless `mode` says so."""
    uri = path if path == MEMORY else f"{Path(path).absolute().as_uri()}?mode={mode}"
    try:
        database = sqlite3.connect(
            uri, timeout=timeout, isolation_level=None, check_same_thread=False, uri=True
        )
        for pragma in _FULL_SYNCS:
            database.execute(pragma)
        return database
    except sqlite3.Error as error:
        raise SourceError(f"{path}: cannot be opened as a log ({error})") from None


@contextmanager
def _said(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise SourceError(f"{path}: the log failed ({error})") from error


@contextmanager
def _transaction(database: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    database.execute(begin)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _missing(path: str) -> str:
    return (
        f"{path}: there is no log: a writer makes it, with `SqliteLog(path).produce(…)` or "
        '`.create_topic("updates")`; or correct the path'
    )


_lock = threading.Lock()
_open: Counter[tuple[str, bool]] = Counter()  # handles of this process, by file and writable


def claim(path: str, writable: bool) -> None:
    """Note a handle that is opened. Raises SourceError if that breaks the invariant."""
    place = os.path.realpath(path)
    with _lock:
        if _open[place, not writable]:
            has, asked = ("written", "only read") if not writable else ("only read", "written")
            raise SourceError(
                f"{path}: this process has it open to be {has}, not to be {asked}: "
                "open both the same way, or close the other first"
            )
        _open[place, writable] += 1


def release(path: str, writable: bool) -> None:
    place = os.path.realpath(path)
    with _lock:
        _open[place, writable] -= 1
        if not _open[place, writable]:
            del _open[place, writable]


def mode_to_read(path: str) -> tuple[str, Callable[[], bool]]:
    """The mode of a SQLite URI that reads a log as it is, and whether what was read so far can be
    relied on. Raises SourceError if it cannot be read without writing."""
    before = _state(path)  # before the look for a -wal: who writes makes that first
    if not os.path.exists(f"{path}-wal"):
        return "ro&immutable=1", lambda: _state(path) == before
    if not os.path.exists(f"{path}-shm"):
        raise SourceError(
            f"{path}-wal: lies there without its -shm, so the log cannot be read without writing "
            "beside it: open it once with write permission, as with `lpma ingest`"
        )
    return "ro&readonly_shm=1", lambda: True


def _state(path: str) -> tuple[int, int, int] | None:
    """What changes when the file is written; None: it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
