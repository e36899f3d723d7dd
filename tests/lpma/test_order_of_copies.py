"""What a batch's copies, kernels and the host do with the same memory is in order, and no kernel
finds the columns of another batch. Without a device: see tests/support/no_gpu.

Each of the lines that see to it is taken away in turn, and that shows."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.waiting import HANGS_S

pytest.importorskip("numba")

BATCHES = 120
MUTANTS = {  # as drive.py has them, and what each does harm to
    "no wait for columns": "reads weight",
    "no wait for weights alone": "reads weight",
    "no wait for readers": "a copy writes",
    "no note of readers": "a copy writes",
    "no turns": "another batch",
    "a turn for each try": "another batch",
    "no wait for the twin": "the host writes",
}


def found(*args: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.support.no_gpu.drive", *map(str, args)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert told.returncode == 0, told.stderr
    return dict(json.loads(told.stdout))


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_used_out_of_turn(seed: int) -> None:
    told = found(seed, BATCHES)
    assert told["conflicts"] == []
    kinds = {f"{kind} applied" for kind in ("pinned", "validated", "plain", "mixed", "wait")}
    assert kinds | {"pinned refused", "plain refused"} <= told["done"].keys()
    assert {"apply_batch", "sort_batch", "locate", "move_leaves"} <= told["launched"].keys()


@pytest.mark.parametrize("mutant", MUTANTS)
def test_what_keeps_the_order(mutant: str) -> None:
    """Most show at once, some only with a certain batch after another one."""
    words: set[str] = set()
    for seed in range(1, 9):
        words.update(*found(seed, BATCHES, mutant)["conflicts"])
        if any(MUTANTS[mutant] in told for told in words):
            return
    raise AssertionError(words)
