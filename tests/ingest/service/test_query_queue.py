"""Questions on the event loop: gathered, told in time, and dropped when nobody waits for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.requests import ClientDisconnect

import lpma
from ingest.errors import PipelineError
from ingest.pipeline.graph_requests import GraphRequests, GraphView
from ingest.service import query_queue
from ingest.service.context import Context, Limits
from ingest.service.problems import Problem
from ingest.service.query_queue import QueryQueue
from ingest.types import Name
from lpma import Kind
from tests.support.waiting import HANGS_S


class Desk:
    """A service's questions, which are answered when the test says so."""

    def __init__(self, **limits: Any) -> None:
        self.graph = lpma.Graph(device="cpu")
        self.graph.insert([1, 1, 2], [2, 3, 3])
        self.requests = GraphRequests()
        self.held: list[int] = []  # how many questions of ours each turn had
        self.queue = QueryQueue(Context(self.requests, self.graph, limits=Limits(**limits)))

    def ask(self, u: int | list[int], receive: Any = None) -> asyncio.Task[Any]:
        given: list[Name] = [*u] if isinstance(u, list) else [u]
        client = receive or Client(stays=True)
        return asyncio.ensure_future(self.queue.ask(client, Kind.DEGREE, given))

    async def answer(self) -> None:
        """Hold one turn."""
        await all_is_done()
        self.held.append(len(self.queue._sent))
        self.requests.answer(GraphView(self.graph, None, 1, 1), 0, lambda: None)
        await all_is_done()


async def all_is_done() -> None:
    """Let the loop come round until nothing is left that waits for neither time nor answers. There
    is no other thread."""
    for _ in range(20):
        await asyncio.sleep(0)


async def until(condition: Callable[[], Any]) -> None:
    """Wait for what comes with the next looks."""
    async with asyncio.timeout(HANGS_S):
        while not condition():
            await asyncio.sleep(0.001)


class Client:
    """The messages of a client that sends a GET, and then stays or leaves."""

    def __init__(self, stays: bool) -> None:
        self._messages = [{"type": "http.request"}] + [{"type": "http.disconnect"}] * (not stays)

    async def __call__(self) -> Any:
        return self._messages.pop(0) if self._messages else await asyncio.Event().wait()


def degree(task: asyncio.Task[Any]) -> list[int]:
    found = task.result()
    return np.asarray(found.joint)[found.lo : found.hi].tolist()


def test_those_that_come_meanwhile_go_together() -> None:
    async def run() -> None:
        desk = Desk()
        first = [desk.ask(u) for u in (1, 2, 3)]
        await all_is_done()
        later = [desk.ask(1) for _ in range(20)]
        await desk.answer()
        assert [degree(task) for task in first] == [[2], [1], [0]]
        assert not any(task.done() for task in later)
        await desk.answer()
        assert [degree(task) for task in later] == [[2]] * 20
        assert desk.held == [3, 20]

    asyncio.run(run())


def test_one_flush_has_bounded_rows() -> None:
    async def run() -> None:
        desk = Desk(max_rows=10)
        tasks = [desk.ask([1] * 6) for _ in range(5)]
        for _ in range(3):
            await desk.answer()
        assert desk.held == [2, 2, 1]
        assert all(degree(task) == [2] * 6 for task in tasks)

    asyncio.run(run())


def test_too_many_that_wait_are_told_to_come_back() -> None:
    async def run() -> None:
        desk = Desk(max_waiting=3, max_rows=4)
        tasks = [desk.ask(1) for _ in range(5)]
        await desk.answer()
        told = await asyncio.gather(*tasks, return_exceptions=True)
        problems = [one for one in told if isinstance(one, Problem)]
        assert [problem.status_code for problem in problems] == [503, 503]
        assert all(problem.headers == {"Retry-After": "1"} for problem in problems)
        assert desk.queue._count == desk.queue._rows == 0
        wide = Desk(max_rows=4)
        rows = [wide.ask([1] * 4) for _ in range(12)]
        await all_is_done()
        assert sum(task.done() for task in rows) == 1, "ten times max_rows and one more wait"
        for task in rows:
            task.cancel()

    asyncio.run(run())


def test_a_deadline_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(query_queue, "LOOK_S", 0.001)
    monkeypatch.setattr(query_queue, "time", SimpleNamespace(monotonic=lambda: now))

    async def run() -> None:
        nonlocal now
        desk = Desk(deadline_s=5.0)
        under_way = desk.ask(1)
        await all_is_done()
        waiting = desk.ask(2)
        await all_is_done()
        now += 5.1
        for task in (under_way, waiting):
            with pytest.raises(Problem, match="no answer within") as late:
                await task
            assert late.value.status_code == 504
        await until(lambda: not desk.queue._waiting)  # what nobody waits for takes no room
        await desk.answer()
        again = desk.ask(1)
        await desk.answer()
        assert degree(again) == [2]

    asyncio.run(run())


def test_a_client_that_went_away_costs_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_queue, "LOOK_S", 0.001)

    async def run() -> None:
        desk = Desk()
        stays = desk.ask(1)
        await all_is_done()
        leaves, waits = desk.ask(2, Client(stays=False)), desk.ask(1)
        with pytest.raises(ClientDisconnect):
            await leaves
        open_ones = (*desk.queue._sent, *desk.queue._waiting)
        await until(lambda: not any(callable(question.watch) for question in open_ones))
        await all_is_done()
        assert not stays.done()
        assert not waits.done()
        await desk.answer()
        await desk.answer()
        assert desk.held == [1, 1]
        assert degree(stays) == degree(waits) == [2]

    asyncio.run(run())


def test_the_end_of_the_stream_is_told() -> None:
    async def run() -> None:
        desk = Desk()
        task = desk.ask(1)
        await all_is_done()
        desk.requests.close("the stream ended")
        for ended in (task, desk.ask(1)):
            with pytest.raises(PipelineError, match="ended"):
                await ended

    asyncio.run(run())


def test_figures_do_not_wait_for_a_heavy_question() -> None:
    """What has its own ask is told in the turn in which a heavy question is cut off."""

    async def run() -> None:
        desk = Desk()
        heavy = desk.ask([1, 2])
        await all_is_done()
        told = desk.requests.ask(lambda moment: moment.version)
        desk.requests.answer(GraphView(desk.graph, None, 1, 1, -1.0), 0, lambda: None)
        assert told.result(0) == 1
        assert not heavy.done()
        for _ in range(2):
            await all_is_done()
            desk.requests.answer(GraphView(desk.graph, None, 1, 1, -1.0), 0, lambda: None)
        with pytest.raises(Problem, match="snapshot") as refused:
            await heavy
        assert refused.value.status_code == 413

    asyncio.run(run())
