"""Whose packages are imported, what is installed beside them, and what the libraries need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lpma
from ingest import installation
from ingest.cli.doctor import examine
from lpma.dependencies import how_to_install

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
COMMAND_ONLY = ("matplotlib", "rich", "typer")
WRITTEN = [
    path
    for folder in (".", "docs", *installation.NAMES, "benchmarks")
    for pattern in ("*.md", "*.py", "*.yaml", "Makefile", "Dockerfile")
    for path in (ROOT.glob(pattern) if folder == "." else (ROOT / folder).rglob(pattern))
]


def python(code: str, *path: Path, cwd: Path, status: int = 0) -> str:
    """What a program prints, with folders that come first on its path and then the checkout."""
    places = os.pathsep.join(map(str, (*path, ROOT)))
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=os.environ | {"PYTHONPATH": places},
        capture_output=True, text=True, timeout=600, check=False,  # a first use compiles
    )  # fmt: skip
    assert finished.returncode == status, finished.stderr
    return finished.stdout + finished.stderr


def package(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text("")
    return folder


def installed(folder: Path, distribution: str, *names: str) -> Path:
    """A folder where pip has put a distribution of a stranger's, with these packages."""
    information = folder / f"{distribution.replace('-', '_')}-9.9.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\n"
                                          "Version: 9.9\n")  # fmt: skip
    (information / "RECORD").write_text("".join(f"{name}/__init__.py,,\n" for name in names))
    for name in names:
        package(folder, name)
    return folder


def test_nothing_is_in_the_way_here() -> None:
    document = examine()
    assert document["folders"] == dict.fromkeys(installation.NAMES, str(ROOT))
    assert document["lpma"] == lpma.__version__
    assert document["problems"] == []


def test_doctor_notices_a_package_from_elsewhere(tmp_path: Path) -> None:
    first = package(tmp_path / "first", "algorithms")
    code = "from ingest.cli.doctor import examine; print(*examine()['problems'], sep='\\n')"
    said = python(code, first, cwd=tmp_path)
    assert f"`import algorithms` finds the one in {first}" in said


def test_doctor_notices_a_folder_that_would_hide_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program there would import it. A folder that is no package hides nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ingest").mkdir()
    assert examine()["problems"] == []
    (tmp_path / "algorithms.py").write_text("")
    (problem,) = examine()["problems"]
    assert str(tmp_path / "algorithms.py") in problem


@pytest.mark.parametrize("distribution, names", [
    ("algorithms", ("algorithms",)), ("intake-of-data", ("ingest", "other")), ("lpma", ("lpma",)),
    ("lpma", ("average",)),
])  # fmt: skip
def test_doctor_notices_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distribution: str, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(installed(tmp_path, distribution, *names))])
    (problem,) = examine()["problems"]
    assert f"distribution {distribution} is another project's" in problem
    assert f"pip uninstall {distribution}" in problem


def test_our_own_former_name_is_no_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "lpma", "lpma")
    (tmp_path / "lpma-9.9.dist-info" / "entry_points.txt").write_text(
        f"[console_scripts]\nlpma = {installation.COMMAND}\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert examine()["problems"] == []


def test_a_strangers_lpma_is_told_at_once(tmp_path: Path) -> None:
    """`lpma doctor` cannot run then; nothing of `ingest` can."""
    there = package(tmp_path / "there", "lpma")
    said = python("import ingest", there, cwd=tmp_path, status=1)
    last = said.splitlines()[-1]
    assert last.startswith(f"ImportError: `import lpma` finds the one in {there}")
    assert "lpma-graph" in last


# What to install -----------------------------------------------------------------------------


def test_how_to_install() -> None:
    assert how_to_install("kafka") == "pip install 'lpma-graph[kafka]', in a checkout '.[kafka]'"
    assert "'lpma-graph[cuda12]' or 'lpma-graph[cuda13]'" in how_to_install("cuda12", "cuda13")


def test_nothing_says_to_install_a_strangers_package() -> None:
    assert len(WRITTEN) > 100
    for path in WRITTEN:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pip install[^\n]*[ '\"]lpma[\[' `\"]", text), path
        assert not re.search(r"(?<![\w-])lpma\[\w", text), path


LIBRARY = f"""
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {(*COMMAND_ONLY, "networkx", "pyarrow", "igraph")}:
            raise ModuleNotFoundError(name + " is blocked", name=name)

sys.meta_path.insert(0, Blocked())
"""


def test_the_libraries_need_nothing_of_the_command_line(tmp_path: Path) -> None:
    """matplotlib, rich and typer are for the command; the others are extras of the tests."""
    use = """
import pkgutil, importlib, algorithms, ingest, lpma
for package in (lpma, algorithms, ingest):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not any(part in module.name for part in (".cuda", "_cuda", ".cli")):
            try:
                importlib.import_module(module.name)
            except lpma.dependencies.MissingPackage as error:  # prometheus-client, kafka-python
                assert error.name == "prometheus_client", error
            except ingest.SourceError as error:
                assert "Kafka" in str(error)
g = lpma.Graph(device="cpu")
g.insert([0, 1, 2], [1, 2, 0])
assert algorithms.triangle_count(g.snapshot()) == 1
with ingest.SqliteLog("log") as log:
    log.produce("updates", ingest.encode_updates([5], [6]))
    with ingest.Pipeline(log, g, "state") as pipeline:
        assert pipeline.run(until="end") == 1
print("used")
"""
    assert python(LIBRARY + use, cwd=tmp_path) == "used\n"


def test_the_first_program_of_the_readme_runs_on_what_make_demo_installs(tmp_path: Path) -> None:
    blocks: list[Any] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert python(f"{LIBRARY}{blocks[0]}\nprint(g.num_edges)", cwd=tmp_path) == "2\n"
    assert (tmp_path / "graph.lpma").is_file()
