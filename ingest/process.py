"""How a process that is ours shares its time, as `lpma ingest`, `lpma serve` and a shard's do. The
library sets none of it: the process is its user's.

*The interpreter's lock.* A thread that has let go of it, to wait for a device or a socket, gets it
back when the thread that computes meanwhile has had it for the switch interval. Python's own, 5 ms,
is fifty times what a batch takes.

*Looks for garbage.* A full one walks over every object that may be part of a cycle, and all threads
stand still meanwhile. Modules and compiled kernels are some 150,000 of them, which take 50 ms, and
a busy service's requests bring such a look about each second: its slowest answers waited for
nothing else. What is there when the service begins stays until the end, so it is set aside
(`gc.freeze`), and a look walks over what came since, in less than 10 ms. What is set aside and
falls into disuse later, in a cycle, is freed when the service has ended.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_S = 2e-4  # a switch takes some 10 us


def pass_the_lock_on_soon() -> None:
    """Set the switch interval of this process."""
    sys.setswitchinterval(SWITCH_S)


@contextmanager
def short_pauses() -> Iterator[None]:
    """Within, looks for garbage leave out what was there before."""
    gc.collect()  # or garbage would be set aside, too
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
