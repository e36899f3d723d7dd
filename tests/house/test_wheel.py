"""The wheel: what it ships, that it works where nothing else is, and that types reach those who
install it. The programs that mypy checks here are a user's, strict, in an environment that has the
wheel and not the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.conftest import missing, proxies
from tests.support.turns import made_once

ROOT = Path(__file__).parents[2]
ROOMS = ("lpma", "algorithms", "ingest")
ARCHIVE = "lpma/cuda/kernels.bin"  # of kernels, if it was made before the wheel
SHIPPED = ("*.py", "*.cu", "*.cuh", "py.typed")

RIGHT = """
from pathlib import Path

import numpy as np

import algorithms
import ingest
import lpma

g = lpma.Graph(directed=False, device="cpu")
g.insert([0, 0, 1], np.array([1, 2, 2]), weight=2.0)
g.delete(0, 2)
degree: int = g.degree(1)
b = lpma.Batch()
b.insert(2, 3, 1.5)
number: int = b.hops(0, 3)
answers: lpma.Answers = g.apply(b)
s: lpma.Snapshot = g.snapshot()
edges: int = s.num_edges + g.num_edges
g.save("graph.lpma")
again: lpma.Graph = lpma.Graph.load(Path("graph.lpma"), device="cpu")

cores = algorithms.core_numbers(s)
triangles: int = algorithms.triangle_count(s)
tracker = algorithms.Tracker(g, ["core", "components"])
tracker.update()
best: list[algorithms.Diverse] = algorithms.top_diversity(s, "truss", k=4, t=10)


def told(reply: ingest.Reply) -> None:
    print(reply.version)


shared: ingest.SettingsDict = {"batch_size": 1000, "batch_interval": 0.5}
with ingest.SqliteLog("stream.log") as log, ingest.Client(log) as client:
    log.produce("updates", ingest.encode_updates([0], [1]))
    with ingest.Pipeline(log, g, "state", names=True, replies=told, device="cpu") as pipeline:
        operations: int = pipeline.step() + pipeline.run(until="end")
    resumed: ingest.Pipeline = ingest.Pipeline.resume("state", log, **shared)
    reply: ingest.Reply = client.successors(7)
    asked = client.ask_many([ingest.Ask(lpma.Kind.DEGREE, v) for v in range(10)])
"""
WRONG = {  # a line, and what mypy says of it
    "ingest.Pipeline(log, g, batch_szie=5)": 'Unexpected keyword argument "batch_szie" for "Pipe',
    'ingest.Pipeline(log, g, batch_size="5")': '"batch_size" to "Pipeline" has incompatible type',
    'ingest.Pipeline(log, g, late="never")': '"late" to "Pipeline" has incompatible type',
    'ingest.Pipeline.resume("c", log, histroy=5)': 'Unexpected keyword argument "histroy" for "res',
    'g.save("a", "b", "c")': 'Too many arguments for "save"',
    "size: str = g.num_edges": 'expression has type "int"',
    "algorithms.triangle_cuont(g)": 'has no attribute "triangle_cuont"',
}
ALONE = """
import json, sys, lpma, algorithms, ingest
print(json.dumps([module.__path__[0] for module in (lpma, algorithms, ingest)]))
print(json.dumps([path for path in sys.path if path]))
"""
pytestmark = pytest.mark.integration
OPENING = """
import algorithms
import ingest
import lpma

g, log = lpma.Graph(), ingest.SqliteLog("stream.log")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources."""
    try:
        if int(version("setuptools").split(".")[0]) < 77:
            missing("wheel", f"building needs setuptools 77, {version('setuptools')} is here")
    except PackageNotFoundError:
        missing("wheel", "building needs setuptools")
    tree = made_once(tmp_path_factory, "wheel", build)
    (built,) = (tree / "dist").glob("lpma_graph-*.whl")
    return built


def build(tree: Path) -> None:
    unwanted = shutil.ignore_patterns("__pycache__", "*.nbc", "*.nbi")
    for room in ROOMS:
        shutil.copytree(ROOT / room, tree / room, ignore=unwanted, dirs_exist_ok=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    (tree / ARCHIVE).write_bytes(b"compiled beforehand")
    _run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index",
         "--wheel-dir", str(tree / "dist"), str(tree))  # fmt: skip


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of an environment with the wheel, and with what else is installed here."""
    home = tmp_path_factory.mktemp("home")
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    places = {"base": str(home), "platbase": str(home)}
    site = Path(sysconfig.get_path("purelib", "venv", places))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    others = [path for path in sys.path if path.endswith("-packages")]
    (site / "others.pth").write_text("\n".join(others))
    return site


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an empty environment in which pip has installed the wheel, and
    from the index that pip is configured with what the wheel depends on."""
    home = tmp_path_factory.mktemp("empty")
    _run(sys.executable, "-m", "venv", str(home))
    programs = home / "bin"
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--retries", "1",
               "--no-compile", "--disable-pip-version-check", str(wheel)]  # fmt: skip
    finished = subprocess.run(
        install,
        cwd=home,
        env=_of_nobody() | proxies(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if finished.returncode != 0:
        lines = finished.stderr.strip().splitlines()
        missing("wheel", f"pip cannot install it: {lines[-1] if lines else finished.stdout}")
    return programs


def _run(*command: str) -> str:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def _alone(home: Path, *command: str) -> str:
    """What a program of the empty environment prints, run in `home`, away from the checkout."""
    environ = _of_nobody() | {"LPMA_CACHE": str(home / "cache")}
    finished = subprocess.run(
        command, cwd=home, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def _of_nobody() -> dict[str, str]:
    """This environment's variables, without those that say where the checkout and its data are."""
    ours = ("PYTHONPATH", "LPMA_DATA", "LPMA_REQUIRE", "NUMBA_CACHE_DIR", "LPMA_COMPILE")
    return {name: value for name, value in os.environ.items() if name not in ours}


def test_it_ships_all_that_the_packages_have(site: Path) -> None:
    for room in ROOMS:
        assert (site / room / "py.typed").is_file()
        for pattern in SHIPPED:
            ours, theirs = (
                {path.relative_to(place): path.read_bytes()
                 for path in (place / room).rglob(pattern)}
                for place in (ROOT, site)
            )  # fmt: skip
            assert theirs == ours
    assert (site / ARCHIVE).read_bytes() == b"compiled beforehand"
    assert not (site / "tests").exists()
    assert not (site / "benchmarks").exists()


@pytest.mark.all_cores
def test_it_works_in_an_empty_environment(empty: Path, tmp_path: Path) -> None:
    """Nothing of the checkout is on the path; the demo runs with nothing compiled, and what it says
    to do next works."""
    told = _alone(tmp_path, str(empty / "python"), "-c", ALONE)
    folders, path = (json.loads(line) for line in told.splitlines())
    assert all(Path(folder).is_relative_to(empty.parent) for folder in folders), folders
    assert not any(Path(folder).is_relative_to(ROOT) for folder in path), path
    lpma = str(empty / "lpma")
    doctor = json.loads(_alone(tmp_path, lpma, "doctor", "--json"))
    assert doctor["problems"] == []
    assert all(Path(folder).is_relative_to(empty.parent) for folder in doctor["folders"].values())
    told = _alone(tmp_path, lpma, "demo", "--operations", "20000", "--seconds", "2")
    steps = [line for line in told.split("\nnext\n")[1].splitlines() if line.strip()]
    assert len(steps) == 5
    for step in steps[:4]:
        assert step.split()[0] == lpma
        _alone(tmp_path, "bash", "-c", step)
    last = "lpma --version"
    assert _alone(tmp_path, "bash", "-c", f"{steps[4]}\n{last}").startswith("lpma ")


def test_types_reach_users(site: Path, tmp_path: Path) -> None:
    """A program that uses the three packages rightly passes; of a wrong one each line fails."""
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(RIGHT)
    lines = "".join(f"{line}\n" for line in WRONG)
    (tmp_path / "wrong.py").write_text(OPENING + lines)
    finished = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--config-file=", "--cache-dir",
         str(tmp_path / "cache"), "--python-executable", _python_of(site), "right.py", "wrong.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    errors = [line for line in finished.stdout.splitlines() if ": error:" in line]
    first = OPENING.count("\n") + 1
    assert len(errors) == len(WRONG), finished.stdout + finished.stderr
    for error, (number, said) in zip(errors, enumerate(WRONG.values(), first), strict=True):
        assert error.startswith(f"wrong.py:{number}: error:")
        assert said in error


def _python_of(site: Path) -> str:
    return str(next(parent for parent in site.parents if (parent / "pyvenv.cfg").is_file())
               / "bin" / "python")  # fmt: skip
