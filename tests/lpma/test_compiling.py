"""Kernels compiled beforehand: the lists, the workers, the stamp, and who waits for whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numba import typeof, types

import lpma
from lpma.cpu import cache, compiling, manifest
from lpma.cpu.manifest import Entry
from lpma.cpu.search import first_not_below
from tests.support.kernel_lists import text_of
from tests.support.waiting import HANGS_S

pytestmark = pytest.mark.integration

SEARCH = "5 lpma.cpu.search.first_not_below(int64[::1], int64, int64, int64)"
ABSENT = "5 lpma.cpu.search.none_such(int64)"


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The lines of the list of the package `lpma`, to be changed; and an empty cache."""
    lines = [SEARCH]

    def entries(package: str) -> tuple[Entry, ...]:
        return tuple(map(manifest.parse, lines)) if package == "lpma" else ()

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "entries", entries)
    cache.directory.cache_clear()
    compiling._stamps.cache_clear()
    yield lines
    cache.directory.cache_clear()
    compiling._stamps.cache_clear()


def kept() -> list[str]:
    return sorted(path.name for path in cache.directory().rglob("*.nbc"))


@pytest.mark.parametrize("package", manifest.PACKAGES)
def test_every_kernel_of_a_list_is_there_and_its_types_read_back(package: str) -> None:
    entries = manifest.entries(package)
    assert entries
    for entry in entries:
        assert hasattr(entry.kernel, "py_func"), entry
        assert manifest.parse(str(entry)) == entry
        text = ", ".join(map(text_of, manifest._types(entry.types)))
        assert text == entry.types


def test_types_are_written_as_they_are_read() -> None:
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    kinds = [
        types.int64, types.uint8, types.float32, types.boolean, types.none, types.literal(3),
        typeof(np.zeros(3)), typeof(frozen), typeof(np.zeros((2, 3), np.int32)),
        typeof(np.zeros(6)[::2]), typeof((1, 2)), typeof((1, 2.0)),
    ]  # fmt: skip
    for kind in kinds:
        assert manifest._types(text_of(kind)) == (kind,)
    with pytest.raises(ValueError, match="argument of type"):
        text_of(types.unicode_type)
    with pytest.raises(ValueError, match="not an entry"):
        manifest.parse("lpma.cpu.search.first_not_below")


def test_a_list_is_compiled_once(listed: list[str]) -> None:
    assert not compiling.is_compiled()
    shares: list[float] = []
    compiling.compile_all(progress=shares.append)
    assert compiling.is_compiled()
    assert shares == [1.0, 1.0]
    assert [name.split("-")[0] for name in kept()] == ["search.first_not_below"]
    before = os.stat(next(cache.directory().rglob("*.nbc"))).st_mtime_ns
    compiling.compile_all()
    assert os.stat(next(cache.directory().rglob("*.nbc"))).st_mtime_ns == before


def test_a_list_that_has_changed_is_compiled_again(listed: list[str]) -> None:
    compiling.compile_all()
    listed.append(SEARCH.replace("int64[::1]", "uint64[::1]"))
    compiling._stamps.cache_clear()
    assert not compiling.is_compiled()
    compiling.compile_all()
    assert len(kept()) == 2


@pytest.fixture
def two_sources(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets this process be of a checkout, by its name, in which the sources are others."""
    own = cache.source_key

    def stand_in(checkout: str) -> None:
        monkeypatch.setattr(cache, "source_key", lambda module: checkout + own(module))
        compiling._stamps.cache_clear()

    return stand_in


def test_a_list_whose_kernels_were_evicted_is_not_compiled(
    listed: list[str], two_sources: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other checkouts share the cache. What one evicts, the other must not take for compiled: its
    kernels would be compiled one by one where they are called."""
    monkeypatch.setattr(cache, "KEPT", 1)
    compiling.compile_all()
    old = compiling._stamps("lpma")[0].parent
    os.utime(old, (0, 0))  # nobody has used it for long
    two_sources("a")
    assert not compiling.is_compiled()
    cache.make(cache.folder("lpma.cpu.search"))
    two_sources("")
    assert not old.exists()
    assert not compiling.is_compiled()
    cache.make(old)  # a process of the old source compiles one kernel of several
    assert not compiling.is_compiled()
    compiling.compile_all()
    assert compiling.is_compiled()


def test_what_is_looked_for_is_not_evicted(
    listed: list[str], two_sources: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that finds its kernels compiled may read them at any time, however many other
    checkouts compile theirs meanwhile."""
    monkeypatch.setattr(cache, "KEPT", 1)
    compiling.compile_all()
    os.utime(compiling._stamps("lpma")[0].parent, (0, 0))
    assert compiling.is_compiled()
    for checkout in "abc":
        two_sources(checkout)
        cache.make(cache.folder("lpma.cpu.search"))
    two_sources("")
    assert compiling.is_compiled()


def test_kernels_that_go_while_they_are_compiled_leave_no_stamp(
    listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = compiling._Crew._feed

    def evicted(crew: compiling._Crew) -> None:
        work(crew)
        cache._evict(compiling._stamps("lpma")[0].parent)

    monkeypatch.setattr(compiling._Crew, "_feed", evicted)
    with pytest.raises(compiling.CompileError, match="was removed while its kernels were"):
        compiling.compile_all()
    assert not compiling.is_compiled()
    monkeypatch.undo()


def test_a_kernel_that_cannot_be_compiled_is_told_and_leaves_no_stamp(listed: list[str]) -> None:
    listed.insert(0, ABSENT)
    with pytest.raises(lpma.LpmaError, match=r"1 kernels .*none_such.*AttributeError"):
        compiling.compile_all()
    assert not compiling.is_compiled()
    assert len(kept()) == 1  # the others were compiled


def test_a_worker_that_is_killed_is_told(
    listed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = compiling._Crew._start

    def killed(crew: compiling._Crew) -> subprocess.Popen[str]:
        worker = start(crew)
        worker.kill()
        worker.wait()
        return worker

    monkeypatch.setattr(compiling._Crew, "_start", killed)
    with pytest.raises(compiling.CompileError, match="worker"):
        compiling.compile_all()
    assert not compiling.is_compiled()


def test_two_processes_do_not_compile_the_same(listed: list[str], tmp_path: Path) -> None:
    """One that holds the lock is waited for; then its stamp is found, and nothing is started."""
    (stamp,) = compiling._stamps("lpma")
    begun = threading.Event()
    with compiling._alone(None):

        def compile_too() -> None:
            begun.set()
            compiling.compile_all(ending=threading.Event())

        waiting = threading.Thread(target=compile_too)
        waiting.start()
        begun.wait()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert kept() == []
        cache.make(stamp.parent)
        stamp.touch()
    waiting.join()
    assert kept() == []


def test_what_ends_leaves_what_is_left(listed: list[str]) -> None:
    ending = threading.Event()
    ending.set()
    compiling.compile_all(ending=ending)
    assert kept() == []
    assert not compiling.is_compiled()


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "lpma.cpu.worker", "0"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    said, _ = worker.communicate(f"{SEARCH}\n{ABSENT}\n", timeout=HANGS_S)
    assert worker.returncode == 0
    assert [line.partition(":")[0] for line in said.splitlines()] == ["", "AttributeError"]


def test_the_kernel_of_an_entry_is_the_one_that_python_calls() -> None:
    entry = manifest.parse(SEARCH)
    entry.compile()
    assert entry.kernel is first_not_below
    assert (types.Array(types.int64, 1, "C"), *[types.int64] * 3) in first_not_below.signatures


def test_a_forked_child_does_not_hold_the_lock(listed: list[str]) -> None:
    with compiling._alone(None):
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
    try:
        script = f"""
import fcntl
fcntl.lockf(open({str(cache.directory() / "lock")!r}, "w"), fcntl.LOCK_EX | fcntl.LOCK_NB)
"""
        subprocess.run([sys.executable, "-c", script], check=True)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
