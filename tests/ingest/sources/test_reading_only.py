"""A log that is only read: nothing is written beside it, whoever else has it open or had it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest import SqliteLog
from ingest.errors import SourceError
from ingest.types import Partition
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


def test_who_writes_meanwhile_is_followed(path: Path) -> None:
    """Where nobody had it open, the file is taken as one that does not change, until it does."""
    started(path, "closes").communicate(timeout=HANGS_S)
    with SqliteLog(path, writable=False) as log, SqliteLog(path, writable=False) as other:
        assert len(log.poll()) == 1
        for _ in range(3):
            started(path, "closes").communicate(timeout=HANGS_S)
            assert len(log.poll()) == 1
        process = started(path, "lives")
        for _ in range(2):
            again(process)
        assert len(log.poll(timeout=HANGS_S)) == 3
        process.communicate(timeout=HANGS_S)
        assert log.at_end()
        for how in ("dies", "closes"):
            started(path, how).communicate(timeout=HANGS_S)
            assert len(log.poll(timeout=HANGS_S)) == 1
        assert len(other.poll()) == 9
    with SqliteLog(path) as log:
        assert len(log.poll()) == 9


def test_what_is_read_while_it_changes_is_read_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the first answer believed, its records would be lost or come twice."""
    started(path, "closes").communicate(timeout=HANGS_S)
    with SqliteLog(path, writable=False) as log:
        its, calls = log._one_by_one, []

        def slowly(*given: Any) -> Any:
            found = its(*given)
            if not calls:
                started(path, "closes").communicate(timeout=HANGS_S)
            calls.append(found)
            return found

        monkeypatch.setattr(log, "_one_by_one", slowly)
        assert [record.offset for record in log.poll()] == [0, 1]
        assert [len(found) for found in calls] == [1, 2]


OFTEN = """
import sys, ingest
for _ in range(60):
    with ingest.SqliteLog(sys.argv[1]) as log:
        log.produce("updates", ingest.encode_row(1, 2))
"""


def test_whoever_opens_and_closes_it_meanwhile(path: Path) -> None:
    """What lies beside the file comes and goes while it is opened."""
    started(path, "closes").communicate(timeout=HANGS_S)
    writer = subprocess.Popen([sys.executable, "-c", OFTEN, path], cwd=ROOT)
    found: list[int] = []
    with SqliteLog(path, writable=False) as stays:
        while writer.poll() is None or len(found) < 61:
            with SqliteLog(path, writable=False) as log:
                log.seek({Partition("updates", 0): len(found)})
                found += [record.offset for record in log.poll()]
        assert writer.returncode == 0
        assert found == [*range(61)]
        assert len(stays.poll()) == 61


def test_another_log_in_its_place_is_not_read_on(path: Path) -> None:
    started(path, "closes").communicate(timeout=HANGS_S)
    with SqliteLog(path, writable=False) as log:
        assert len(log.poll()) == 1
        path.unlink()
        started(path, "closes").communicate(timeout=HANGS_S)
        with pytest.raises(SourceError, match="another log"):
            log.poll()


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
