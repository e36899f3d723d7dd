"""The harness of kills: it kills where it is told to, and what goes wrong otherwise is noticed."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.kills import Place, Started, drawn, run

pytestmark = pytest.mark.system
HERE = "tests.house.test_kills"


def note(path: Path, word: str) -> None:
    with open(path, "a") as file:
        file.write(word)


async def note_late(path: Path, word: str) -> None:
    await asyncio.sleep(0)
    note(path, word)


POINTS = [f"{HERE}:note", f"{HERE}:note_late"]


def write(path: Path) -> None:
    for word in "abc":
        note(path, word)


def write_late(path: Path) -> None:
    for word in "abc":
        asyncio.run(note_late(path, word))


@pytest.mark.parametrize("work, point", [(write, POINTS[0]), (write_late, POINTS[1])])
@pytest.mark.parametrize("after", [False, True])
def test_a_process_dies_before_or_after_a_call(
    tmp_path: Path, work: Callable[..., None], point: str, after: bool
) -> None:
    assert run(work, tmp_path / "f", points=POINTS, place=Place(point, 1, after)).killed
    assert (tmp_path / "f").read_text() == ("ab" if after else "a")


def test_a_place_that_is_never_met_is_told(tmp_path: Path) -> None:
    ended = run(write, tmp_path / "f", points=POINTS, place=Place(POINTS[0], 3))
    assert not ended.killed
    assert ended.calls == {POINTS[0]: 3}


def test_a_point_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="failed by itself"):
        run(write, tmp_path / "f", points=[f"{HERE}:nothing"])


def write_in_threads(path: Path, count: int) -> None:
    threads = [threading.Thread(target=note, args=(path, "a")) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_calls_of_all_threads_are_counted(tmp_path: Path) -> None:
    assert run(write_in_threads, tmp_path / "f", 20, points=POINTS).calls == {POINTS[0]: 20}


def fail() -> None:
    raise ValueError("not a kill")


@pytest.mark.parametrize(
    "work, args, status",
    [(fail, (), 1), (os._exit, (3,), 3), (signal.raise_signal, (signal.SIGTERM,), -15)],
)
def test_a_process_that_fails_by_itself_is_a_failure(
    work: Callable[..., None], args: tuple[int, ...], status: int
) -> None:
    with pytest.raises(AssertionError, match=f"failed by itself: {status}"):
        run(work, *args, points=POINTS, place=Place(POINTS[0], 0))


@pytest.mark.parametrize("wait_in", ["the work", "a thread that is left"])
def test_a_hang_ends(wait_in: str) -> None:
    work = wait_for_ever if wait_in == "the work" else leave_a_thread
    with Started(work) as started, pytest.raises(AssertionError, match="hangs"):
        started.wait(0.2)
    assert not started._process.is_alive()


def wait_for_ever() -> None:
    threading.Event().wait()


def leave_a_thread() -> None:
    threading.Thread(target=wait_for_ever).start()


def test_drawn_places_are_met_and_each_point_has_its_share() -> None:
    calls = Counter({"a": 1, "b": 7, "c": 3, "never": 0})
    places = drawn(np.random.default_rng(1), calls, 600)
    assert Counter(place.point for place in places) == {"a": 200, "b": 200, "c": 200}
    assert {(place.call, place.after) for place in places if place.point == "c"} == {
        (call, after) for call in range(3) for after in (False, True)
    }
    assert all(place.call < calls[place.point] for place in places)
