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


@pytest.mark.parametrize(
    "first", ["import algorithms", "import algorithms.strong_components", "import ingest.analyses"]
)
def test_a_folder_that_is_called_says_which_function_is_meant(first: str) -> None:
    code = (
        f"{first}\nimport algorithms\n"
        "folders = [f for f in algorithms._FOLDERS if f not in algorithms._FOLDER_OF]\n"
        "assert 'core' in folders and 'strong_components' in folders\n"
        "for name in folders:\n"
        "    try:\n"
        "        getattr(algorithms, name)(None, k=3)\n"
        "    except TypeError as error:\n"
        "        said = str(error)\n"
        "    assert said.startswith(f'algorithms.{name} is a module: call algorithms.'), said\n"
        "    for each in said.partition(': call ')[2].split(' or '):\n"
        "        assert each.partition('.')[2] in algorithms.__all__, said\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with pytest.raises(TypeError, match=r"call algorithms\.strongly_connected_components$"):
        algorithms.strong_components(None)  # type: ignore[operator]


def test_the_package_alone_is_light() -> None:
    code = "import sys, algorithms; assert not {'numpy', 'numba', 'lpma'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
