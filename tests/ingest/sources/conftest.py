"""What the tests of sources begin with: files, a broker that goes wrong on demand, events."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.edge_files import Write
from tests.support.events import Told

if TYPE_CHECKING:
    from tests.support.fault_broker import FaultBroker
    from tests.support.fault_stream import Stream
    from tests.support.own_time import OwnTime


@pytest.fixture
def fault_broker() -> Iterator[FaultBroker]:
    """A broker with the topic "updates", of one partition."""
    from tests.support.fault_broker import FaultBroker  # needs kafka-python

    with FaultBroker(updates=1) as broker:
        yield broker


@pytest.fixture
def own_time(fault_broker: FaultBroker, monkeypatch: pytest.MonkeyPatch) -> OwnTime:
    """The time of whoever reads from that broker, or writes to it."""
    from tests.support.own_time import OwnTime

    return OwnTime(fault_broker, monkeypatch)


@pytest.fixture
def stream(fault_broker: FaultBroker, own_time: OwnTime, tmp_path: Path) -> Stream:
    """A stream on that broker, with checkpoints."""
    from tests.support.fault_stream import Stream

    return Stream(fault_broker, own_time, tmp_path / "checkpoint")


@pytest.fixture
def told() -> Iterator[Told]:
    """The events that are logged while the test runs."""
    handler = Told()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a file of a name and a content, compressed where the name says so."""

    def write(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write
