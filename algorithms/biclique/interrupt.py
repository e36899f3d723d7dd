"""Kernels that Ctrl-C can stop.

Only the main thread receives an interrupt, and only while it runs Python code. If it ran a kernel
itself, the interrupt would wait for the kernel's end, which may take hours. So the main thread
waits while other threads count, and tells them to stop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lpma.cpu.threads import run_all


def stoppable(
    kernel: Callable[..., Any], calls: Sequence[tuple[Any, ...]], stop: Callable[[], None]
) -> list[Any]:
    """As `run_all`, and interruptible: on an interrupt, `stop` is called, and the interrupt is
    raised again after the kernels have ended. REQUIRES: `stop` makes them end soon."""
    if threading.current_thread() is not threading.main_thread():
        return run_all(kernel, calls)
    with ThreadPoolExecutor(1, thread_name_prefix="lpma-count") as counting:
        counted = counting.submit(run_all, kernel, calls)
        try:
            return counted.result()
        except BaseException:
            stop()
            raise
