"""What the tests of faults begin with: a broker that goes wrong on demand, and a stream on it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.events import Told

if TYPE_CHECKING:
    from tests.support.fault_broker import FaultBroker
    from tests.support.fault_stream import Stream


@pytest.fixture
def fault_broker() -> Iterator[FaultBroker]:
    """A broker with the topic "updates", of one partition."""
    from tests.support.fault_broker import FaultBroker  # needs kafka-python

    with FaultBroker(updates=1) as broker:
        yield broker


@pytest.fixture
def stream(fault_broker: FaultBroker, tmp_path: Path) -> Stream:
    """A stream on that broker, with checkpoints."""
    from tests.support.fault_stream import Stream

    return Stream(fault_broker, tmp_path / "checkpoint")


@pytest.fixture
def told() -> Iterator[Told]:
    """The events that are logged while the test runs."""
    handler = Told()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)
