"""The store's CUDA kernels against the CPU backend, where there is no device: see
tests/support/emulated."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import missing
from tests.support.emulated import build

pytestmark = pytest.mark.integration

GRAPHS = 6
LARGE_ROWS = 500


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    try:
        build.compiler()
    except build.Unavailable as error:
        missing("c++", str(error))


def fuzz(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.emulated.fuzz", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.parametrize("rows", [LARGE_ROWS, 1 << 17])
@pytest.mark.parametrize("seed", [0, 1])
def test_kernels_agree_with_the_cpu(seed: int, rows: int) -> None:
    told = fuzz(seed, GRAPHS, rows)
    assert told.returncode == 0, told.stderr
    launched = json.loads(told.stdout)
    assert {"apply_batch", "sort_batch", "locate", "move_leaves", "rebuild"} <= launched.keys()
    assert ("decide" in launched) == (rows == LARGE_ROWS)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        # An edge that is only written to makes no room for itself.
        (1 << 17, "if (action == WRITE || !(own >> leaf & 1)) continue;"),
        (LARGE_ROWS, "if (*w.gate) return;"),  # slots of a refused batch are not moved
    ],
)
def test_a_kernel_that_leaves_something_out_is_found(rows: int, code: str) -> None:
    told = fuzz(1, GRAPHS, rows, code)
    assert "Error" in told.stderr


MOST_CALLS = {
    "pinned batch": 30, "batch": 41, "batch on the device": 90, "one edge": 33, "edges": 33,
    "successors": 41, "degree": 27, "snapshot": 44,
}  # fmt: skip


def test_a_call_is_few_functions() -> None:
    """Of Python's, of which each costs more beside a busy thread than alone."""
    command = [sys.executable, "-m", "tests.support.emulated.calls"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert told.returncode == 0, told.stderr
    counted = json.loads(told.stdout)
    assert counted.keys() == MOST_CALLS.keys()
    assert {name: n for name, n in counted.items() if n > MOST_CALLS[name]} == {}


def test_a_read_that_is_cut_off_gives_the_callers_stream_back() -> None:
    """The streams are on a stack as CuPy's are; nothing is late here."""
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "tests.support.emulated.plugin", "-m", "gpu",
        "-k", "degree", "tests/lpma/test_cut_reads.py",
    ]  # fmt: skip
    told = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert "1 passed" in told.stdout, told.stdout + told.stderr
