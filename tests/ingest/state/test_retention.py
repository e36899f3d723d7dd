"""The policy of kept checkpoints: what it says, and that pruning at every step changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import CheckpointError, PipelineError
from ingest.state import directory as directory_module
from ingest.state.checkpoint import (
    GRAPH,
    VERIFIED,
    Checkpoint,
    CheckpointSnapshot,
    read_checkpoint,
    verify,
)
from ingest.state.directory import CheckpointDirectory, checkpoint_numbers, checkpoint_path
from ingest.state.journal import segment_numbers
from ingest.state.retention import Every, RetentionPolicy
from tests.ingest.state.test_checkpoint import STATE, opened, rotate
from tests.support.stream_model import SavedImage

POLICIES = st.lists(st.builds(Every, st.integers(1, 50), st.integers(1, 5)), max_size=3).map(
    RetentionPolicy
)
TIMES = st.lists(st.integers(0, 300), max_size=40)


@pytest.mark.parametrize("text", ["1h", "1h=0", "0h=1", "1y=1", "1h=24;1d=7", "h=1", "1h=24,", " "])
def test_what_is_no_policy(text: str) -> None:
    with pytest.raises(PipelineError, match="is not a rule"):
        RetentionPolicy.of(text)


def test_what_is_one() -> None:
    assert RetentionPolicy.of("") == ()
    assert RetentionPolicy.of("30s=2, 1min=3,1h=24,1d=7,2w=1") == (
        (30_000, 2), (60_000, 3), (3_600_000, 24), (86_400_000, 7), (1_209_600_000, 1),
    )  # fmt: skip


@given(POLICIES, TIMES)
def test_slot_by_slot(policy: RetentionPolicy, times: list[int]) -> None:
    """As the words have it: of each of the newest slots in which there is one, the first."""
    expected = set()
    for every, most in policy:
        slots = {time // every for time in times}
        for slot in sorted(slots, reverse=True)[:most]:
            expected.add(min(n for n, time in enumerate(times) if time // every == slot))
    assert policy.kept(dict(enumerate(times))) == expected


@given(POLICIES, TIMES)
def test_pruning_at_every_step_keeps_the_same(policy: RetentionPolicy, times: list[int]) -> None:
    times.sort()
    left: dict[int, int] = {}
    for number, time in enumerate(times):
        left[number] = time
        left = {n: left[n] for n in policy.kept(left) | {number}}
    assert policy.kept(left) == policy.kept(dict(enumerate(times)))


def commit(directory: CheckpointDirectory, time: int) -> int:
    taken = CheckpointSnapshot(STATE, {GRAPH: SavedImage(b"graph")}, rotate(directory), [], time)
    return directory.commit(taken)[0]


def test_what_is_kept_is_verified_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def noting(found: Checkpoint) -> None:
        seen.append(found.number)
        verify(found)

    for _ in range(2):  # and not again by the next writer
        directory = opened(tmp_path)  # which verifies the newest, kept or not
        directory.kept.policy = RetentionPolicy.of("1s=2,1h=1")
        first = len(checkpoint_numbers(tmp_path))
        with monkeypatch.context() as patch:
            patch.setattr(directory_module, "verify", noting)
            for i in range(first, first + 4):
                commit(directory, 3_600_000 + 600 * i)
        directory.close()
    # Taken at 0.0, 0.6, 1.2, … s: 0 is the first of its hour, 6 and 7 are the newest, and of
    # the newest two seconds the first are 5 and 7.
    assert seen == sorted(set(seen))
    assert 0 in seen
    assert (checkpoint_path(tmp_path, 0) / VERIFIED).exists()
    numbers = checkpoint_numbers(tmp_path)
    assert numbers[0] == 0
    assert len(numbers) <= 5
    found = read_checkpoint(checkpoint_path(tmp_path, 0), 0)
    assert segment_numbers(tmp_path)[0] == found.segment
    assert segment_numbers(tmp_path) == list(
        range(found.segment, segment_numbers(tmp_path)[-1] + 1)
    )


def test_a_damaged_one_is_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = opened(tmp_path)
    directory.kept.policy = RetentionPolicy.of("1h=9")
    for i in range(2):
        commit(directory, i)
    (checkpoint_path(tmp_path, 0) / GRAPH).write_bytes(b"GRAPH")
    commit(directory, 2)
    assert checkpoint_numbers(tmp_path) == [1, 2]
    assert "checkpoint 0: graph.lpma is damaged" in caplog.text
    commit(directory, 3)
    assert checkpoint_numbers(tmp_path) == [1, 2, 3]
    directory.close()


def test_one_that_cannot_be_read_now_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many open files are no damage: it is looked at another time."""
    directory = opened(tmp_path)
    directory.kept.policy = RetentionPolicy.of("1h=9")
    commit(directory, 0)

    def refuse(found: object) -> None:
        raise CheckpointError("cannot be read") from OSError(24, os.strerror(24))

    with monkeypatch.context() as patch:
        patch.setattr(directory_module, "verify", refuse)
        for i in range(3):
            commit(directory, i)
        assert checkpoint_numbers(tmp_path) == [0, 2, 3]
        assert not (checkpoint_path(tmp_path, 0) / VERIFIED).exists()
    commit(directory, 4)
    assert (checkpoint_path(tmp_path, 0) / VERIFIED).exists()
    directory.close()
