"""No kernel reads or writes beside an array: fenced processes, see tests/support/fence."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lpma.arrays import address
from lpma.backend.numba.segments import empty_segments, expanded
from lpma.pma.layout import Size
from tests.conftest import missing, soak, told_by_soak
from tests.support.fence import SIDES, UNAVAILABLE

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
TESTS = [
    *("lpma/" + name for name in (
        "test_conformance.py", "test_conformance_batches.py", "test_conformance_reads.py",
        "test_csr.py", "test_expiry.py", "test_hops.py", "test_late.py", "test_one.py",
        "test_opera.py", "test_parts.py", "test_persist.py", "test_rebalance.py",
        "test_shrink.py", "test_small_batches.py", "test_snapshot_export.py", "test_sort.py",
        "test_staging.py", "test_vertices.py", "names",
    )),
    *("algorithms/" + name for name in (
        "test_absorb.py", "test_bfs.py", "test_bicliques.py", "test_bicliques_listing.py",
        "test_bicliques_sides.py", "test_clustering.py", "test_components.py", "test_core.py",
        "test_diversity.py", "test_diversity_methods.py", "test_extract.py", "test_following.py",
        "test_gbc.py", "test_pagerank.py", "test_personalised.py", "test_schedule.py",
        "test_shortest_paths.py", "test_similarity.py", "test_strong_components.py",
        "test_tracker.py", "test_tracker_butterflies.py", "test_tracker_pagerank.py",
        "test_tracker_parts.py", "test_triangles.py", "test_truss.py", "test_views.py",
        "sharded/test_rows.py", "sharded/test_programs.py", "sharded/test_refining.py",
    )),
]  # fmt: skip


def fenced(side: str, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a fenced run of a module ended with. Skips the test where there is no fence."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "LPMA_SOAK"))}
    command = [sys.executable, "-m", "tests.support.fence", side, module, *arguments]
    told = subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=3600, check=False
    )
    if told.returncode == UNAVAILABLE:
        missing("cc", told.stderr.strip())
    return told


def arrays(told: subprocess.CompletedProcess[str]) -> tuple[int, int]:
    """How many arrays were fenced, and how many were not. Fails unless the run ended well."""
    assert told.returncode == 0, told.stdout[-4000:] + told.stderr[-8000:]
    counted = re.search(r"^fence: (\d+) arrays fenced, (\d+) not$", told.stderr, re.MULTILINE)
    assert counted is not None, told.stderr
    return int(counted[1]), int(counted[2])


@pytest.mark.parametrize("breach", ["numpy", "kernel"])
@pytest.mark.parametrize(
    "side, what",
    [
        ("after", "byte 88 of an array of 88 bytes was touched"),
        ("before", "1 bytes before an array of 88 bytes were touched"),
    ],
)
def test_what_leaves_an_array_ends_there(side: str, what: str, breach: str) -> None:
    told = fenced(side, "tests.support.fence.breaches", breach)
    assert told.returncode == -signal.SIGSEGV, told.stderr
    assert what in told.stderr
    assert "breaches.py" in told.stderr  # in Python's stack


def test_what_touches_a_freed_array_ends_there() -> None:
    told = fenced("after", "tests.support.fence.breaches", "freed")
    assert told.returncode == -signal.SIGSEGV, told.stderr
    assert "an array of 88 bytes was touched after it was freed" in told.stderr


def test_a_table_without_entries_is_found() -> None:
    """Kernels read an entry of the table of a column that is off, too."""
    told = fenced("after", "tests.support.fence.breaches", "tables")
    assert told.returncode == -signal.SIGSEGV, told.stderr
    assert "lpma/backend/numba" in told.stderr


@pytest.mark.parametrize("m, parts", [(0, 4), (1, 4), (5, 4), (5, 1)])
@pytest.mark.parametrize("weight", [None, "float32", "float64"])
@pytest.mark.parametrize("times", [True, False])
def test_every_column_has_a_table_of_all_levels(
    m: int, parts: int, weight: str | None, times: bool
) -> None:
    """Also one that is off, whose levels are at 0: kernels read an entry of each table."""
    made = empty_segments(32, None if weight is None else np.dtype(weight), times, Size(m, parts))
    for segments in (made, expanded(made, Size(m + 1))):
        kept = zip(segments.tables, segments.view[4:7], strict=True)
        assert all(address(table) == at for table, at in kept)
        columns = segments.keys, segments.weights, segments.times
        for table, levels in zip(segments.tables, columns, strict=True):
            assert table.dtype == np.int64
            assert table.tolist() == [0 if levels is None else address(levels[x])
                                      for x in range(segments.m + 1)]  # fmt: skip


@pytest.mark.parametrize("side", SIDES)
def test_no_kernel_leaves_an_array_at_its_bounds(side: str) -> None:
    ours, others = arrays(fenced(side, "tests.support.fence.small"))
    assert ours > 100_000
    assert others < ours / 100


@pytest.mark.soak
@pytest.mark.parametrize("side", SIDES)
def test_no_kernel_leaves_an_array_in_larger_graphs(side: str) -> None:
    soak(0, 1)
    ours, others = arrays(fenced(side, "tests.support.fence.all_kernels"))
    assert others < ours / 100


@pytest.mark.soak
@pytest.mark.parametrize("side", SIDES)
def test_no_kernel_leaves_an_array_in_tests(side: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests without a kernel, and those that are about memory or processes, are left out."""
    soak(0, 1)
    wrong = {}
    for tests in TESTS:
        told = fenced(side, "pytest", "-q", "-n", "0", "-k", "not numpy", f"tests/{tests}")
        try:
            told_by_soak(capsys, f"{side} {tests}: %d arrays fenced, %d not" % arrays(told))
        except AssertionError as error:
            wrong[tests] = str(error)
            told_by_soak(capsys, f"{side} {tests}: FAILED")
    assert not wrong, "\n\n".join(f"{name}:\n{error}" for name, error in wrong.items())
