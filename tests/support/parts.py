"""Levels in parts, in stores that are small enough to look at, and spread in small shares."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from unittest.mock import patch

from lpma.pma import layout
from lpma.store import growth


@contextmanager
def levels_in_parts(slots: int = 1) -> Iterator[None]:
    """Have levels of this many slots or more come in parts, but the first two; on a CUDA device
    too, whatever it can do, since small arrays are ordinary ones there."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(layout, "PARTED_SLOTS", slots))
        patches.enter_context(patch.object(layout, "EVEN_SLOTS", 64))
        patches.enter_context(patch.object(growth, "share", lambda rows, _: max(2 * rows, 64)))
        if find_spec("cupy"):
            memory = importlib.import_module("lpma.backend.cuda.store.virtual_memory")
            patches.enter_context(patch.object(memory, "is_supported", lambda number: True))
            patches.enter_context(patch.object(memory, "page_bytes", lambda number: 1 << 21))
        yield
