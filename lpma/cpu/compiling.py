"""Compiling all kernels of the CPU beforehand, on all cores, into the cache that processes share.

Numba compiles one kernel at a time in a process, so there is a worker process for each core
(worker.py). They are handed the entries of the lists of kernels (manifest.py) one by one, the small
kernels that others are made of first: a worker reads from the cache what another has compiled.

Once a list has been compiled whole, each folder of its kernels (cache.py) gets a stamp, named after
the processor, Numba's settings and the list: to look for stamps takes milliseconds, and no Numba.
One process compiles at a time; others wait for it.

This module must not import Numba.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from ..errors import LpmaError
from ..host import processor_kind
from . import cache
from .manifest import PACKAGES, Entry, entries
from .threads import THREADS

Progress = Callable[[float], None]

WAIT_S = 0.1  # between two looks at whether another process still compiles
BEHIND = 10  # niceness of workers that compile while the program goes on


class CompileError(LpmaError, RuntimeError):
    """Kernels could not be compiled beforehand. They are still compiled where they are called."""


def is_compiled(packages: Iterable[str] = PACKAGES) -> bool:
    """Whether all kernels in these packages' lists were compiled for this machine and are still
    there. If so, they are noted as used."""
    stamps = [stamp for package in packages for stamp in _stamps(package)]
    if not all(stamp.is_file() for stamp in stamps):
        return False
    for stamp in stamps:
        cache.note_use(stamp.parent)
    return True


def compile_all(
    packages: Iterable[str] = PACKAGES,
    progress: Progress | None = None,
    niceness: int = 0,
    ending: threading.Event | None = None,
    wanted: Callable[[Entry], bool] | None = None,
) -> None:
    """Compile what is in these packages' lists and not in the cache, and wait. progress: is called
    with the share that is done, 0 to 1, by one thread at a time; ending: once it is set, what
    is left is left; wanted: compile only these entries, without a stamp. Raises CompileError."""
    packages = [package for package in packages if not is_compiled([package])]
    if packages:
        with _alone(ending):
            missing = [package for package in packages if not is_compiled([package])]
            if missing and not (ending is not None and ending.is_set()):
                crew = _Crew(missing, progress, niceness, wanted)
                _crews.append(crew)
                try:
                    crew.work()
                finally:
                    _crews.remove(crew)
    if progress is not None:
        progress(1.0)


def end_workers() -> None:
    """End what `compile_all` is doing in other threads, which then raises CompileError."""
    for crew in list(_crews):
        crew.stop()


@lru_cache(maxsize=len(PACKAGES))
def _stamps(package: str) -> tuple[Path, ...]:
    """The stamp of each module in a package's list, in the folder of its kernels."""
    lines: dict[str, list[str]] = {}
    for entry in entries(package):
        lines.setdefault(entry.module, []).append(str(entry))
    settings = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_"))
    machine = [processor_kind(), *settings]
    stamps = []
    for module, listed in lines.items():
        digest = hashlib.sha256("\0".join([*machine, *listed]).encode()).hexdigest()[:16]
        stamps.append(cache.folder(module) / f"{cache.STAMP}{digest}")
    return tuple(stamps)


@contextmanager
def _alone(ending: threading.Event | None) -> Iterator[None]:
    """Within, no other thread and no other process compiles into this directory, unless `ending`
    was set. The lock is a process's own (lockf, not flock): a forked child does not hold it."""
    cache.directory().mkdir(parents=True, exist_ok=True)
    turn = _turn
    while not turn.acquire(timeout=WAIT_S):
        if ending is not None and ending.is_set():
            yield
            return
    try:
        with open(cache.directory() / "lock", "w") as lock:
            while ending is None or not ending.is_set():
                try:
                    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except (BlockingIOError, PermissionError):
                    time.sleep(WAIT_S)
            yield
    finally:
        turn.release()


class _Crew:
    """Workers, and the entries that are left."""

    def __init__(
        self, packages: list[str], progress: Progress | None, niceness: int,
        wanted: Callable[[Entry], bool] | None,
    ) -> None:  # fmt: skip
        self._stamped = packages if wanted is None else []
        self._progress = progress
        self._niceness = niceness
        listed = [entry for package in packages for entry in entries(package)
                  if wanted is None or wanted(entry)]  # fmt: skip
        self._all_ms = max(1, sum(entry.milliseconds for entry in listed))
        self._done_ms = 0
        self._left = deque(listed)
        self._stopped = False
        self._wrong: list[str] = []
        self._lock = threading.Lock()
        self._workers: list[subprocess.Popen[str]] = []
        self._process = os.getpid()

    def work(self) -> None:
        """Compile all, and leave the stamps. Raises CompileError."""
        try:
            threads = [
                threading.Thread(target=self._feed, daemon=True, name="lpma-compile")
                for _ in range(max(1, min(THREADS, len(self._left))))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            self.stop()
        if self._stopped:
            self._wrong.append("the others: compiling was ended")
        if self._wrong:
            raise CompileError(f"{len(self._wrong)} kernels cannot be compiled: {self._wrong[0]}")
        for stamp in (stamp for package in self._stamped for stamp in _stamps(package)):
            try:
                stamp.touch()
            except (FileNotFoundError, NotADirectoryError):
                # No folder is made: it would be an empty one.
                raise CompileError(
                    f"{stamp.parent} was removed while its kernels were compiled: compile again"
                ) from None

    def _feed(self) -> None:
        """Hand entries to one worker until none is left, or the worker ends."""
        try:
            worker = self._start()
        except OSError as error:
            with self._lock:
                self._wrong.append(f"a worker cannot be started: {error}")
            return
        with suppress(BrokenPipeError), worker:  # whose pipes are closed then
            while True:
                with self._lock:
                    if not self._left:
                        return
                    entry = self._left.popleft()
                answer = _answer(worker, entry)
                self._note(entry, answer.strip() if answer else "the worker ended")
                if not answer:
                    return

    def _start(self) -> subprocess.Popen[str]:
        paths = os.pathsep.join([str(cache.ROOT), *filter(None, sys.path)])
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "lpma.cpu.worker", str(self._niceness)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONPATH": paths}, start_new_session=True,
        )  # fmt: skip
        with self._lock:
            self._workers.append(worker)
        return worker

    def _note(self, entry: Entry, wrong: str) -> None:
        with self._lock:
            self._done_ms += entry.milliseconds
            if wrong:
                self._wrong.append(f"{entry.module}.{entry.function}: {wrong}")
            if self._progress is not None:
                self._progress(self._done_ms / self._all_ms)

    def stop(self) -> None:
        """End the workers, at once if they are at work: nothing waits for them any longer. A forked
        child leaves its parent's alone."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._stopped |= bool(self._left)
            self._left.clear()
            workers = list(self._workers)
        for worker in workers:
            worker.kill()
            worker.wait()


def _answer(worker: subprocess.Popen[str], entry: Entry) -> str:
    """A line; nothing if the worker has ended."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    with suppress(OSError):
        worker.stdin.write(f"{entry}\n")
        worker.stdin.flush()
        return worker.stdout.readline()
    return ""


_crews: list[_Crew] = []  # at work
_turn = threading.Lock()


def _forget_work() -> None:
    """A forked child has none of its parent's threads and workers."""
    global _turn
    _turn = threading.Lock()
    _crews.clear()


os.register_at_fork(after_in_child=_forget_work)
