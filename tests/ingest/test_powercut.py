"""Power cuts: what was promised before one holds after it; and whatever is synced has to be.

See tests/support/powercut. Under `make soak` there are a hundred times as many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.conftest import missing, soak
from tests.support.powercut import CASES, Recorder, Run, Unavailable, in_memory
from tests.support.powercut.disk import Disk, Tree, read_tree
from tests.support.powercut.mutants import OTHERS, PLACES, SPARE
from tests.support.powercut.trace import (
    CREATE,
    LINK,
    MKDIR,
    REMOVE,
    RENAME,
    SYNC,
    TRUNCATE,
    WRITE,
    Op,
    read_trace,
)

CUTS = {"remote": 1000, "racing": 500, "cut short": 500, "embedded": 1000, "log": 1500,
        "new log": 1000, "save": 1000, "served": 1000}  # fmt: skip


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    with in_memory(tmp_path_factory.mktemp("powercut")) as directory:
        try:
            yield Recorder(directory)
        except Unavailable as error:
            missing("cc", str(error))


@pytest.fixture(scope="module")
def runs(recorder: Recorder) -> dict[str, Run]:
    """Each case, run once."""
    return recorder.run_all()


# The promises --------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.integration
@pytest.mark.parametrize("case", CASES)
def test_what_was_promised_survives_a_power_cut(runs: dict[str, Run], case: str) -> None:
    for seed in range(soak(1, 100)):
        runs[case].check(CUTS[case], seed)


@pytest.mark.soak
@pytest.mark.integration
def test_what_was_promised_survives_a_second_one(recorder: Recorder, runs: dict[str, Run]) -> None:
    """While what the first one left is gone on with."""
    for run in recorder.after_power_cuts("remote", runs["remote"], soak(10, 300), seed=1):
        run.check(soak(40, 300), seed=2)


@pytest.mark.soak
@pytest.mark.integration
def test_what_was_promised_survives_one_after_a_kill(
    recorder: Recorder, runs: dict[str, Run]
) -> None:
    """What the one that was killed had not synced is there, and may be lost later."""
    for run in recorder.after_kills("remote", runs["remote"], soak(20, 300), seed=1):
        run.check(soak(20, 300), seed=2)


@pytest.mark.soak
@pytest.mark.integration
def test_what_was_promised_survives_wherever_the_threads_are(recorder: Recorder) -> None:
    """The stream, and the commit beside it, as they happen to run."""
    for seed in range(soak(2, 100)):
        recorder.run("racing").check(100, seed)


# The test of the test ------------------------------------------------------------------------


@pytest.mark.integration
def test_every_place_that_syncs_is_known(runs: dict[str, Run]) -> None:
    assert set().union(*(run.places for run in runs.values())) == {*PLACES, *SPARE}


MUTANTS = PLACES | {name: case for name, (case, _) in OTHERS.items()}


@pytest.mark.integration
@pytest.mark.parametrize("mutant", MUTANTS)
def test_nothing_that_syncs_can_be_taken_away(recorder: Recorder, mutant: str) -> None:
    run = recorder.run(MUTANTS[mutant], mutant)
    with pytest.raises(AssertionError, match="after call"):
        in_rounds(run)


def in_rounds(run: Run) -> None:
    """4,000 cuts, which go through the run 40 times: what is wrong late in it is found early."""
    for seed in range(40):
        run.check(100, seed)


# The simulator -------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize("case", CASES)
def test_the_recorder_misses_nothing(runs: dict[str, Run], case: str) -> None:
    disk = Disk()
    for op in runs[case].ops:
        disk.do(op)
    assert disk.running() == read_tree(runs[case].directory / "disk")


def op(code: str, inode: int = 0, path: str = "", other: str = "", at: int = 0, data: bytes = b"",
       ) -> Op:  # fmt: skip
    return Op(code, inode, at, path, other, data)


ROOT = [op(MKDIR, 1, "."), op(SYNC, 1)]
FILE = [*ROOT, op(CREATE, 2, "f"), op(WRITE, 2, data=b"old"), op(SYNC, 2), op(SYNC, 1)]


def left(ops: list[Op]) -> list[Tree]:
    """All that cuts after these calls leave, as far as 300 of them show."""
    disk = Disk()
    for each in ops:
        disk.do(each)
    found: list[Tree] = []
    for seed in range(300):
        tree = disk.cut(Random(seed))
        if tree not in found:
            found.append(tree)
    return found


def test_what_is_synced_stays() -> None:
    assert left(FILE) == [{"f": b"old"}]
    assert left([*FILE, op(TRUNCATE, 2), op(SYNC, 2)]) == [{"f": b""}]
    assert left([*FILE, op(REMOVE, path="f"), op(SYNC, 1)]) == [{}]


def test_a_name_that_is_not_synced_may_go() -> None:
    made = [*ROOT, op(CREATE, 2, "f"), op(WRITE, 2, data=b"new"), op(SYNC, 2)]
    assert sorted(left(made), key=len) == [{}, {"f": b"new"}]
    renamed = left([*FILE, op(RENAME, path="f", other="g")])
    assert sorted(map(list, renamed)) == [["f"], ["g"]], "one or the other"
    both = left([*FILE, op(LINK, path="f", other="g"), op(REMOVE, path="f")])
    assert sorted(map(sorted, both)) == [[], ["f"], ["f", "g"], ["g"]], "in any order"


def test_contents_that_are_not_synced_come_in_any_part_and_order() -> None:
    a, b = b"a" * 4096, b"b" * 4096
    written = [*FILE, op(WRITE, 2, at=0, data=a + b), op(WRITE, 2, at=8192, data=b"c")]
    contents = [content for tree in left(written) if isinstance(content := tree["f"], bytes)]
    assert b"old" in contents
    assert a + b + b"c" in contents
    assert any(c.startswith(b"old\0") and c[4096:8192] == b for c in contents), "out of order"
    assert any(c[:4096] == a and c[4096:8192] == bytes(4096) for c in contents), "zeros"
    assert any(b"ab" not in c[:4096] and 0 < c[:4096].count(b"a") < 4096 for c in contents), "torn"
    assert any(len(set(c)) > 50 for c in contents), "garbage"
    assert all(len(c) <= 8193 for c in contents)


def test_calls_that_are_not_known_are_refused(tmp_path: Path) -> None:
    record = b"?" + bytes(16) + (5).to_bytes(4, "little") + bytes(12) + b"fsnap"
    (tmp_path / "trace").write_bytes(record)
    with pytest.raises(ValueError, match="fsnap"):
        read_trace(tmp_path / "trace", tmp_path)
