"""A log that is only read: nothing is written beside it, whoever else has it open or had it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import ingest
from ingest import SqliteLog
from ingest.errors import SourceError
from tests.support.command_line import ROOT
from tests.support.waiting import HANGS_S

pytestmark = pytest.mark.system

WRITER = """
import os, sys, ingest
log = ingest.SqliteLog(sys.argv[1])
log.produce("updates", ingest.encode_row(1, 2))
print("written", flush=True)
if sys.argv[2] == "dies":
    os._exit(0)
for line in sys.stdin:
    if line == "again\\n":
        log.produce("updates", ingest.encode_row(3, 4))
        print("written", flush=True)
log.close()
"""
READER = """
import os, sys, urllib.parse, ingest
ingest.SqliteLog, ingest.IngestError  # imported, as what pathlib needs, while files can be read
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    with ingest.SqliteLog(sys.argv[1], writable=False) as log:
        print(len(log.poll()), log.at_end())
except ingest.IngestError as error:
    print(error)
"""


def started(path: Path, how: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, path, how], text=True, cwd=ROOT,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


def again(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("again\n")
    process.stdin.flush()
    assert process.stdout.readline() == "written\n"


def files(path: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        one.name: (one.stat().st_mtime_ns, one.stat().st_ino, one.read_bytes())
        for one in path.parent.iterdir()
    }


@pytest.fixture
def path() -> Iterator[Path]:
    """In a directory of its own, since those that pytest makes are closed to other users."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "a.log"
        Path(directory).chmod(0o755)


@pytest.mark.parametrize("how", ["closes", "dies", "lives"])
def test_nothing_is_written(path: Path, how: str) -> None:
    process = started(path, how)
    if how != "lives":
        process.communicate(timeout=HANGS_S)
    before = files(path)
    assert len(before) == (1 if how == "closes" else 3)
    with SqliteLog(path, writable=False) as log:
        assert (len(log.poll()), log.at_end(), log.trouble()) == (1, True, None)
        with pytest.raises(SourceError, match="readonly"):
            log.produce("updates", b"")
        with pytest.raises(SourceError, match="readonly"):
            log.create_topic("more")
        if how == "lives":
            again(process)
            assert len(log.poll()) == 1, "what is written meanwhile is read"
    if how == "lives":
        before = {"a.log": files(path)["a.log"]}
        process.communicate(timeout=HANGS_S)
        assert files(path).keys() == before.keys()
    else:
        assert files(path) == before
    with SqliteLog(path) as log:
        assert len(log.poll()) == 1 + (how == "lives")


@pytest.mark.parametrize("how", ["closes", "dies", "lives"])
def test_no_permission_is_needed(path: Path, how: str) -> None:
    """As another user where this is root, whom permissions do not stop."""
    process = started(path, how)
    if how != "lives":
        process.communicate(timeout=HANGS_S)
    for file in path.parent.iterdir():
        file.chmod(file.stat().st_mode | 0o444)
    path.parent.chmod(0o555)
    said = subprocess.run([sys.executable, "-c", READER, path], text=True, cwd=ROOT,
                          capture_output=True, check=False)  # fmt: skip
    process.communicate(timeout=HANGS_S)
    assert said.stdout == "1 True\n", said.stderr


def test_who_writes_meanwhile_is_noticed(path: Path) -> None:
    """Where nobody had it open, the file is taken as one that does not change."""
    started(path, "closes").communicate(timeout=HANGS_S)
    with SqliteLog(path, writable=False) as log:
        assert len(log.poll()) == 1
        started(path, "closes").communicate(timeout=HANGS_S)
        with pytest.raises(SourceError, match="was written while it was read"):
            log.end_offsets()
    with SqliteLog(path, writable=False) as log:
        assert len(log.poll()) == 2


def test_an_index_that_is_not_there_is_told(path: Path) -> None:
    started(path, "dies").communicate(timeout=HANGS_S)
    os.remove(f"{path}-shm")
    with pytest.raises(SourceError, match="without its -shm, so"):
        SqliteLog(path, writable=False)


def test_one_kind_of_handle_in_a_process(path: Path) -> None:
    """Closing one that only reads would release the locks of the others."""
    with SqliteLog(path) as log:
        log.produce("updates", ingest.encode_row(1, 2))
        with pytest.raises(SourceError, match="open to be written, not to be only read"):
            SqliteLog(path, writable=False)
    said = pytest.raises(SourceError, match="open to be only read, not to be written")
    with SqliteLog(path, writable=False), SqliteLog(path, writable=False), said:
        SqliteLog(path)
    with SqliteLog(path) as log:
        log.produce("updates", ingest.encode_row(1, 2))


def test_none_is_made(path: Path) -> None:
    with SqliteLog(path, writable=False) as log, pytest.raises(SourceError, match="no log"):
        log.produce("updates", b"")
    assert not path.exists()
