"""A count that would take hours ends when it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from algorithms.biclique.progress import stoppable
from tests.support.waiting import HANGS_S

ROOT = Path(__file__).parents[2]
PATIENCE_S = HANGS_S

CROWN = """
import numpy as np
from algorithms import count_bicliques
n = 66  # all edges between two sides, but a perfect matching
def count(n, p, q):
    ends = np.arange(n, dtype=np.uint32)
    left = [np.delete(ends, i) + n for i in range(n)]
    right = [np.delete(ends, i) for i in range(n)]
    rows = np.arange(2 * n + 1) * (n - 1), np.concatenate(left + right).astype(np.uint32)
    return count_bicliques(rows, p, q, left=n, method=METHOD)
print(count(6, 3, 3), flush=True)  # compiles
count(66, 20, 20)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("method", ["gbc", "pivot"])
def test_an_interrupt_ends_a_count(method: str) -> None:
    code = CROWN.replace("METHOD", repr(method))
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "20\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"


def test_what_fails_is_raised_after_all_have_ended() -> None:
    stopped = np.zeros(1, np.int64)

    def kernel(number: int) -> int:
        if number == 1:
            raise MemoryError("no room")
        return number

    with pytest.raises(MemoryError, match="no room"):
        stoppable(kernel, [(0,), (1,)], lambda: stopped.__setitem__(0, 1))
    assert stopped[0] == 1
    assert stoppable(kernel, [(0,), (2,)], lambda: None) == [0, 2]
