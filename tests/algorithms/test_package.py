"""The package brings in what is asked for, when it is asked for; a name stands for one thing
whatever was imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

import algorithms


def test_every_name_is_there() -> None:
    assert dir(algorithms) == sorted(algorithms.__all__)
    for name in algorithms.__all__:
        assert getattr(algorithms, name).__name__ == name
    with pytest.raises(AttributeError, match="'algorithms' has no attribute 'nothing'"):
        _ = algorithms.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "first",
    [
        "import algorithms",
        "from algorithms.bfs import cpu",
        "from algorithms.triangles import ranked",
        "from algorithms.pagerank import power_iteration; import algorithms.pagerank",
        "from algorithms import triangles, bfs",
        "import ingest, algorithms.tracker",
    ],
)
def test_a_function_bears_its_folders_name(first: str) -> None:
    code = (
        f"{first}\nimport algorithms, types\n"
        "for name in ('bfs', 'pagerank', 'triangles'):\n"
        "    assert isinstance(getattr(algorithms, name), types.FunctionType), name\n"
        "assert isinstance(algorithms.core, types.ModuleType)\n"
        "from algorithms import core_numbers, Tracker"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_package_alone_is_light() -> None:
    code = "import sys, algorithms; assert not {'numpy', 'numba', 'lpma'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
