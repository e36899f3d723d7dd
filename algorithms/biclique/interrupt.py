"""Counting that Ctrl-C can stop.

Only the main thread hears of an interrupt, and only while it runs Python: a kernel that it is in
comes first, and that may take hours. So the main thread waits while others count, and tells them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lpma.cpu.pieces import together


def stoppable(
    kernel: Callable[..., Any], calls: Sequence[tuple[Any, ...]], stop: Callable[[], None]
) -> list[Any]:
    """As `together`. What interrupts it is raised after `stop` was called and the kernels have
    ended. REQUIRES: `stop` lets them end soon."""
    if threading.current_thread() is not threading.main_thread():
        return together(kernel, calls)
    with ThreadPoolExecutor(1, thread_name_prefix="lpma-count") as counting:
        counted = counting.submit(together, kernel, calls)
        try:
            return counted.result()
        except BaseException:
            stop()
            raise
