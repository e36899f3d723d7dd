"""Connections are read in turns."""

from __future__ import annotations

import asyncio
import os

import pytest

pytest.importorskip("uvicorn")

from uvicorn import Config
from uvicorn.server import ServerState

from ingest.service.connection import SHARE_BYTES, Connection, ParseScheduler, Timeouts
from tests.ingest.service.connections import toy


def test_others_have_their_turn_between_two_shares() -> None:
    """What came at once is parsed in shares, in order, and nothing more is read meanwhile."""
    parsed: list[bytes] = []
    calls: list[str] = []

    class Parsing(Connection):
        def parse(self, data: bytes) -> None:
            parsed.append(data)

    class Transport(asyncio.Transport):
        def pause_reading(self) -> None:
            calls.append("pause")

        def resume_reading(self) -> None:
            calls.append("resume")

        def is_closing(self) -> bool:
            return False

    async def receive() -> None:
        loop = asyncio.get_running_loop()
        config, scheduler = Config(toy, log_config=None, lifespan="off"), ParseScheduler(loop)
        connection = Parsing(config, ServerState(), Timeouts(), scheduler, loop)
        connection.connection_made(Transport())
        sent = os.urandom(3 * SHARE_BYTES + 1)
        connection.data_received(sent)
        assert (len(parsed), calls) == (1, ["pause"])
        connection.flow.pause_reading()
        connection.flow.resume_reading()  # an application that waits for more
        connection.data_received(b"and more")
        for turn in range(2, 5):
            assert calls == ["pause"]
            await asyncio.sleep(0)
            assert len(parsed) == turn
        assert b"".join(parsed) == sent + b"and more"
        assert max(map(len, parsed)) == SHARE_BYTES
        assert calls == ["pause", "resume"]
        parsed.clear()
        many = [Parsing(config, ServerState(), Timeouts(), scheduler, loop) for _ in range(5)]
        for each in many:
            each.connection_made(Transport())
            each.data_received(sent)
        assert len(parsed) == len(many)
        for turn in range(1, 3 * len(many) + 1):  # however many wait, one in each turn
            await asyncio.sleep(0)
            assert len(parsed) == len(many) + turn
        assert not any(each.is_behind for each in many)

    asyncio.run(receive())
