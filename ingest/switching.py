"""How often the threads of a process that is ours pass on the interpreter's lock.

Idea: a thread that has let go of the lock, to wait for a device or a socket, gets it back when the
thread that computes meanwhile has had it for the switch interval. Python's own, 5 ms, is fifty
times what a batch takes. So `lpma ingest`, `lpma serve` and the other commands, and a shard's
process, set a shorter one. The library never does: the process is its user's.
"""

from __future__ import annotations

import sys

SWITCH_S = 2e-4  # a switch takes some 10 us


def pass_the_lock_on_soon() -> None:
    """Set the switch interval of this process."""
    sys.setswitchinterval(SWITCH_S)
