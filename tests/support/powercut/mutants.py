"""Durability, taken away: whatever is synced must be missed by some case when it is not.

A place in the code that calls fsync or fdatasync has a name, "module:function bytes" for that of a
file and "module:function names" for that of a directory. `PLACES` says which case misses it; a case
that has run says which places it passed, so that one that is not listed here is noticed.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from ingest.sources.sqlite.file import LogFile
from ingest.state.journal import Journal

PLACES = {
    "ingest.state.checkpoint:_Summed.__exit__ bytes": "remote",
    "ingest.state.checkpoint:write_checkpoint names": "remote",
    "ingest.state.directory:CheckpointDirectory.commit names": "remote",
    "ingest.state.journal_reader:go_on_behind bytes": "remote",
    "ingest.state.journal:Journal._begin bytes": "remote",
    "ingest.state.journal:Journal._begin names": "remote",
    "ingest.state.journal:Journal._fsync bytes": "remote",
    "ingest.state.journal:SyncedFile.say bytes": "cut short",
    "ingest.sources.sqlite.file:_make_file names": "new log",
    "lpma.file.atomic:make_directory names": "remote",
    "lpma.file.atomic:atomic_write bytes": "save",
    "lpma.file.atomic:atomic_write names": "save",
}

# Places that no power cut misses alone, and why they sync all the same.
SPARE = {
    "ingest.state.journal:seal bytes": "a lost seal loses nothing: it says what is missing",
    "ingest.sources.sqlite.file:_make_file bytes": "SQLite syncs it too, closing the new file",
}


def place_of_caller() -> str:
    """Who called the function that calls this."""
    caller, what = sys._getframe(2), "bytes"
    if caller.f_globals["__name__"] == "lpma.host" and caller.f_back is not None:  # `sync`
        caller = caller.f_back
    if caller.f_code.co_name == "fsync_directory" and caller.f_back is not None:
        caller, what = caller.f_back, "names"
    return f"{caller.f_globals['__name__']}:{caller.f_code.co_qualname} {what}"


def watch_places(skipped: str | None = None) -> Counter[str]:
    """Count the places that sync a file from now on; at `skipped` that does nothing."""
    passed: Counter[str] = Counter()

    def watched(sync: Callable[[int], None]) -> Callable[[int], None]:
        def watching(file: int) -> None:
            place = place_of_caller()
            passed[place] += 1
            if place != skipped:
                sync(file)

        return watching

    os.fsync = watched(os.fsync)  # type: ignore[assignment]
    os.fdatasync = watched(os.fdatasync)  # type: ignore[assignment]
    return passed


def replies_do_not_wait() -> None:
    """No other writer is let pass, but nothing is synced."""

    def lazy(self: Journal) -> None:
        assert self._fence is not None
        self._fence.check()

    Journal.sync = lazy  # type: ignore[method-assign]


def log_syncs_seldom() -> None:
    """SQLite syncs its write-ahead log only before it copies from it."""
    begin = LogFile.__init__

    def lazy(self: LogFile, path: str, timeout: float, writable: bool = True) -> None:
        begin(self, path, timeout, writable)
        self.database.execute("PRAGMA synchronous = NORMAL")

    LogFile.__init__ = lazy  # type: ignore[method-assign]


def acknowledge_at_once() -> None:
    """The service's futures are settled before the log has the records, which it gets when the
    next ones come: so what one client at a time sends is answered while the log has not got it."""
    from ingest.service.writer import UpdateWriter, Written

    write = UpdateWriter._write
    waiting: list[Any] = []

    def eager(self: UpdateWriter, log: Any, group: list[Any]) -> None:
        late = waiting.copy()
        waiting[:] = [replace(request, future=Future()) for request in group]
        for request in group:
            request.future.set_result(Written(None, None))
        if late:
            write(self, log, late)

    UpdateWriter._write = eager  # type: ignore[method-assign]


OTHERS: dict[str, tuple[str, Callable[[], None]]] = {
    "replies do not wait for the journal": ("remote", replies_do_not_wait),
    "the log syncs seldom": ("log", log_syncs_seldom),
    "the log syncs seldom under a pipeline": ("embedded", log_syncs_seldom),
    "the log syncs seldom under a service": ("served", log_syncs_seldom),
    "a service's answer does not wait for the log": ("served", acknowledge_at_once),
}
