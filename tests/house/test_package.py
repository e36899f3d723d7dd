"""What importing a package costs, and that what a package exports is there."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import ingest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
HEAVY = (
    "algorithms", "cupy", "duckdb", "igraph", "ingest", "kafka", "matplotlib", "msgpack",
    "networkx", "pandas", "polars", "pyarrow", "ray", "rich", "scipy.sparse", "sqlite3", "torch",
    "typer",
)  # fmt: skip


def run_python(code: str, *options: str) -> str:
    finished = subprocess.run(
        [sys.executable, *options, "-c", code],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_importing_lpma_is_light() -> None:
    """Neither the other packages nor what only exports, plots and sources need."""
    loaded = run_python("import sys, lpma; print(*sorted(sys.modules))").split()
    assert "lpma.graph" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_using_the_store_stays_light() -> None:
    """A graph, a batch, queries and a snapshot load nothing more."""
    code = (
        "import sys, lpma; g = lpma.Graph(device='cpu'); g.insert([1, 2], [2, 3]); g.delete(1, 2);"
        "g.successors(2); g.snapshot().indices; g.check(); print(*sorted(sys.modules))"
    )
    loaded = run_python(code).split()
    assert [name for name in HEAVY if name in loaded] == []


NO_COMPILER = """
import sys
sys.argv = ["lpma", *{command!r}]
from ingest.cli import main
try:
    main()
except SystemExit:
    pass
print("loaded:", *sorted({{"numba", "pyarrow", "scipy.sparse"}} & sys.modules.keys()))
"""


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["ingest", "--help"],
        ["run", "--help"],
        ["--version"],
        ["doctor"],
        ["info", "nothing"],
        ["query", "edge", "http://127.0.0.1:9", "1", "2"],
    ],
    ids=" ".join,
)
def test_cheap_commands_import_no_compiler(command: list[str]) -> None:
    """Numba takes a third of a second to import."""
    said = run_python(NO_COMPILER.format(command=command))
    assert said.splitlines()[-1] == "loaded:"


def test_importing_ingest_is_light() -> None:
    loaded = run_python("import sys, ingest; print(*sorted(sys.modules))").split()
    assert [name for name in ("numpy", "numba", "msgpack", "ingest.errors") if name in loaded] == []


def test_ingest_has_the_names_that_type_checkers_read() -> None:
    tree = ast.parse((ROOT / "ingest" / "__init__.py").read_text(encoding="utf-8"))
    read = {
        alias.name: f"ingest.{node.module}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
        for alias in node.names
    }
    assert set(ingest.__all__) == read.keys() - {"KafkaSink", "KafkaSource"}
    for name in ingest.__all__:
        assert getattr(ingest, name) is getattr(importlib.import_module(read[name]), name)
        assert name in dir(ingest)
    assert {name: home.removeprefix("ingest.") for name, home in read.items()} == ingest._HOME
    assert ingest.errors.IngestError is ingest.IngestError  # modules, too
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ingest.nothing
