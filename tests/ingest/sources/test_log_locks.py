"""A log that several processes use: none may let go of the locks it holds.

POSIX drops all locks of a process on a file when it closes any descriptor of it. SQLite then takes
a follower for gone, and the last producer to leave deletes the write-ahead log under it."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import ingest
from ingest import SqliteLog
from ingest.types import REPLIES
from tests.support.waiting import HANGS_S, wait_for

ROOT = Path(__file__).parents[3]

PRODUCER = """
import sys
from ingest import SqliteLog, encode_query, encode_updates
from lpma import Kind
number = int(sys.argv[2])
with SqliteLog(sys.argv[1]) as log:
    for _ in range(10):
        log.produce("updates", encode_updates([number], [number + 1]))
    log.produce("queries", encode_query(f"q{number}", Kind.DEGREE, number))
"""


def produce(path: Path, number: int) -> None:
    """By a process that comes, writes and goes."""
    subprocess.run([sys.executable, "-c", PRODUCER, str(path), str(number)], cwd=ROOT, check=True)


def replies(path: Path) -> int:
    """How many have left."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        asked = "SELECT next FROM partitions WHERE topic = ?"
        found = database.execute(asked, (REPLIES,)).fetchone()
    finally:
        database.close()
    return 0 if found is None else int(found[0])


def deleted(process: int) -> list[str]:
    """Files of the log that the process has open and that are gone."""
    found = []
    for name in os.listdir(f"/proc/{process}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{process}/fd/{name}"))
    return [path for path in found if "s.log" in path and path.endswith("(deleted)")]


@pytest.mark.system
def test_producers_come_and_go_while_a_command_follows(tmp_path: Path) -> None:
    path, rounds = tmp_path / "s.log", 5
    produce(path, 0)
    command = "from ingest.cli import main; main()"
    follower = subprocess.Popen(
        [sys.executable, "-c", command, "ingest", str(path), "-c", str(tmp_path / "c"), "--follow"],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def answered(count: int) -> bool:
        assert follower.poll() is None, follower.communicate()[1]
        assert not deleted(follower.pid)
        return replies(path) >= count

    try:
        for number in range(1, rounds):
            wait_for(lambda: answered(number))  # noqa: B023 - called in this round alone
            produce(path, number)
        wait_for(lambda: answered(rounds))
        follower.send_signal(signal.SIGTERM)
        assert follower.wait(HANGS_S) == 0, follower.communicate()[1]
    finally:
        follower.kill()
        follower.communicate()
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()
    with SqliteLog(path) as log:
        assert log.end_offsets()[ingest.Partition("updates", 0)] == 10 * rounds
