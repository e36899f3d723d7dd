"""The house's rules that a reader would otherwise have to check: what `import lpma` costs, which
way imports run, that every module says what it is."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ingest
import lpma

ROOT = Path(__file__).parents[2]
ROOMS = ("lpma", "algorithms", "ingest")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BELOW = {"lpma": {"lpma"}, "algorithms": {"lpma", "algorithms"}, "ingest": set(ROOMS)}
HEAVY = (
    "algorithms", "cupy", "duckdb", "igraph", "ingest", "kafka", "matplotlib", "msgpack",
    "networkx", "pandas", "polars", "pyarrow", "ray", "rich", "scipy.sparse", "sqlite3", "torch",
    "typer",
)  # fmt: skip


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a source imports, at its top or inside a function, by absolute name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    package = parts[:-1]  # of a module, or of a package's __init__
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield start, node.lineno
            for alias in node.names:
                yield f"{start}.{alias.name}", node.lineno


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


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_imports_run_one_way(path: Path) -> None:
    """ingest → algorithms → lpma, and nothing of the tests or benchmarks."""
    room = path.relative_to(ROOT).parts[0]
    for name, line in imports(path):
        first = name.split(".")[0]
        assert first not in ("tests", "benchmarks"), f"line {line}: {name}"
        if first in ROOMS:
            assert first in BELOW[room], f"line {line}: {room} imports {name}"


def test_only_the_backend_knows_its_kernels() -> None:
    """Host logic is written against the protocol: outside lpma/backend nothing imports from a
    backend's own folder, but for the one place that opens it and tools that name it."""
    for path in (ROOT / "lpma").rglob("*.py"):
        if "backend" in path.relative_to(ROOT).parts:
            continue
        for name, line in imports(path):
            assert not name.startswith(("lpma.backend.numba", "lpma.backend.cuda")), (
                f"{named(path)}, line {line}: {name}"
            )


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_generator_is_compiled(path: Path) -> None:
    """Numba cannot compile a caller of a generator that it has from its cache: where the cache was
    filled by half, because that was interrupted or by another process, no later one would run."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and any(
            "jit" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            yields = [n for n in ast.walk(node) if isinstance(n, ast.Yield | ast.YieldFrom)]
            assert not yields, f"{named(path)}, line {node.lineno}: {node.name}"


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=named)
def test_every_module_says_what_it_is(path: Path) -> None:
    """A docstring that opens with a sentence; an empty __init__.py says it all."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.name == "__init__.py" and not tree.body:
        return
    docstring = ast.get_docstring(tree)
    assert docstring, "no docstring"
    assert len(docstring.split()) >= 4, docstring


def test_public_names_are_there_and_documented() -> None:
    for name in lpma.__all__:
        assert hasattr(lpma, name), name
        if not name.startswith("__"):
            assert getattr(lpma, name).__doc__, name
    public = [name for name in vars(lpma.Graph) if not name.startswith("_")]
    undocumented = [
        name for name in public
        if callable(getattr(lpma.Graph, name)) and not getattr(lpma.Graph, name).__doc__
    ]  # fmt: skip
    assert undocumented == []
    assert lpma.__version__.count(".") == 2
