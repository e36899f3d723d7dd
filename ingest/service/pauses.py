"""Short pauses: what a process has loaded is left out of Python's looks for garbage.

Idea: a full look walks over every object that may be part of a cycle, and all threads stand still
meanwhile. Modules and compiled kernels are some 150,000 of them, which take 50 ms, and a busy
service's requests bring such a look about each second: its slowest answers waited for nothing else.
What is there when the service begins stays until the end, so it is set aside (`gc.freeze`), and a
look walks over what came since, in less than 10 ms.

Requires a process that only serves: what is set aside and falls into disuse later, in a cycle, is
freed when the service has ended.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def short_pauses() -> Iterator[None]:
    """Within, looks for garbage leave out what was there before."""
    gc.collect()  # or garbage would be set aside, too
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
