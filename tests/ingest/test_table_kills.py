"""Killed again and again, `lpma ingest` ends with the table, and so do the checkpoints it keeps."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.conftest import soak
from tests.support.cdc.cases import BY_ID, BY_SOURCE, COMPOSITE, Case, database_of, produce
from tests.support.cdc.database import Table
from tests.support.cdc.envelopes import Encoding, Message, messages
from tests.support.cdc.expected import after_each
from tests.support.command_line import command_line, document
from tests.support.killed_tables import POINTS, as_command, command, kept
from tests.support.kills import drawn, run

NAMED = Table(key=("payer", "payee"), text_ends=True)
PLAIN = Encoding("mysql", schemas=False, key_schemas=False)
CASES = {
    "ends are the key": Case(NAMED, Encoding(amounts="decimal", times="us")),
    "ends move": Case(BY_SOURCE, Encoding("sqlserver", times="ns", amounts="string")),
    "sum": Case(BY_ID, PLAIN, "sum"),
    "last": Case(COMPOSITE, Encoding("oracle", amounts="variable", schemas=False), "last"),
}


class Topic:
    """A table's topic that grows, a stretch of it told again now and then; and for each offset
    whether all is told there that was told before."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case, self._random = case, Random(seed)
        self._database = database_of(case, self._random)
        self.told: list[Message] = []
        self.is_complete: list[bool] = []

    def more(self, transactions: int) -> list[Message]:
        start = len(self._database.history)
        changes = self._database.run(transactions)[start:]
        again = self.told[len(self.told) - self._random.choice([0, 0, 5]) :]
        new = list(messages(changes, self._case.table, self._case.encoding))
        self.is_complete += [at == len(again) - 1 for at in range(len(again))] + [True] * len(new)
        self.told += again + new
        return again + new


@pytest.mark.soak
@pytest.mark.parametrize("kills", [
    pytest.param(5, marks=pytest.mark.system), pytest.param(125, marks=pytest.mark.nightly),
])  # fmt: skip
@pytest.mark.parametrize("name", CASES)
def test_a_kill_at_any_point_leaves_the_table(tmp_path: Path, name: str, kills: int) -> None:
    case, rng = CASES[name], np.random.default_rng(kills)
    topic, path, state = Topic(case, seed=kills), tmp_path / "log", tmp_path / "state"
    line = command([path, "--topic", case.place.topic, *case.options], state, "--batch-size", 7)
    with case.log(path) as log:
        for _ in range(2):  # to start, and to resume
            produce(log, topic.more(25))
            calls = run(as_command, state, *line, points=POINTS).calls
        left = soak(kills, 10 * kills)
        for _ in range(4 * left):
            produce(log, topic.more(25))
            (place,) = drawn(rng, calls, 1)
            left -= run(as_command, state, *line, points=[place.point], place=place).killed
            if left == 0:
                break
        assert left == 0, "most runs come by the places that one came by"
    found = document(*line, "--batch-size", 50)
    assert found["rejected"] == 0
    check_checkpoints(topic, case, state)


@pytest.mark.soak
@pytest.mark.parametrize("kills", [
    pytest.param(2, marks=pytest.mark.system), pytest.param(20, marks=pytest.mark.nightly),
])  # fmt: skip
def test_a_process_that_is_killed_from_outside_leaves_the_table(tmp_path: Path, kills: int) -> None:
    """At no point of its code, but when it has written so much more."""
    case, rng = CASES["sum"], np.random.default_rng(kills)
    topic, path, state = Topic(case, seed=kills + 1), tmp_path / "log", tmp_path / "state"
    line = command([path, "--topic", case.place.topic, *case.options], state, "--batch-size", 7)
    with case.log(path) as log:
        for _ in range(soak(kills, 10 * kills)):
            with subprocess.Popen(command_line(*line, "--follow"), stdout=subprocess.DEVNULL) as it:
                enough = written(state) + int(rng.integers(1, 20_000))
                while written(state) < enough:
                    produce(log, topic.more(1))
                    assert it.poll() is None
                it.kill()
    assert document(*line)["rejected"] == 0
    check_checkpoints(topic, case, state)


def written(state: Path) -> int:
    """How many bytes are there; some may be about to go."""
    total = 0
    for path in state.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def check_checkpoints(topic: Topic, case: Case, state: Path) -> None:
    """Each holds the table as of its offset, and the newest all of it."""
    expected = after_each((message.change for message in topic.told), case.table, case.on_repeat)
    offsets = []
    for positions, weights in kept(state):
        offset = positions.get(case.place, 0)
        offsets.append(offset)
        if offset and topic.is_complete[offset - 1]:
            assert weights == expected[offset - 1][1], offset
    assert max(offsets) == len(topic.told)
    assert len(offsets) > 3
