"""The house's rules find what breaks them. `python -m tests.house.rules` checks the project."""

from __future__ import annotations

import textwrap

import pytest

from tests.house.rules import imports, modules, references, systems
from tests.house.rules.sources import ROOT, Source, of_packages

KERNEL = "@compiled\ndef a(n):\n    for i in range(n):\n        yield i\n"
LONG = "def a():\n" + "    x = 1\n" * (modules.FUNCTION_LINES + 1)


def source(name: str, text: str) -> Source:
    return Source(name, textwrap.dedent(text))


@pytest.mark.parametrize(
    "rule, name, text, problem",
    [
        (imports.one_way, "lpma/a.py", "import algorithms", "lpma/a.py:1: lpma imports algorithms"),
        (imports.one_way, "ingest/a.py", "from tests import b", "ingest imports tests"),
        (imports.one_way, "algorithms/b/a.py", "from ...ingest import c", "imports ingest"),
        (imports.floors, "ingest/formats/a.py", "from ..pipeline import b", "ingest.pipeline"),
        (imports.floors, "lpma/store/a.py", "from ..engine.opera import b", "stands above"),
        (imports.floors, "lpma/new.py", "", "stands on no floor"),
        (imports.floors, "ingest/errors.py", "import ingest", "ingest stands above"),
        (imports.kernels_stay_in_the_backend, "lpma/a.py", "from .backend import numba", "own"),
        (modules.docstrings, "lpma/a.py", "a = 1", "does not say what it is"),
        (modules.functions, "lpma/a.py", LONG, "a has 65 lines"),
        (modules.generators, "lpma/a.py", KERNEL, "lpma/a.py:2: a is compiled, and yields"),
        (modules.generators, "lpma/a.py", KERNEL.replace("@", "@jit."), "compiled, and yields"),
        (systems.only_linux, "lpma/a.py", "os.fdatasync(1)", "1: fdatasync is for lpma/host.py"),
        (systems.only_linux, "lpma/a.py", "from os import sched_getaffinity", "sched_getaffinity"),
        (systems.only_linux, "lpma/a.py", "open(f'/proc/{1}')", "/proc/ is for"),
        (systems.only_linux, "lpma/a.py", "sys.platform == 'linux'", "sys.platform is for"),
    ],
)  # fmt: skip
def test_a_rule_finds_what_breaks_it(rule, name, text, problem) -> None:  # type: ignore[no-untyped-def]
    found = list(rule([source(name, text)]))
    assert problem in found[0]


def test_a_circle_is_found_and_what_leads_to_it_is_not() -> None:
    sources = [
        source("lpma/a.py", "from .b import x"),
        source("lpma/b.py", "def f():\n    from . import c"),
        source("lpma/c.py", "if TYPE_CHECKING:\n    import lpma.b"),
    ]
    found = list(imports.circles(sources))
    assert [line.split(":")[0] for line in found] == ["lpma/b.py", "lpma/c.py"]


def test_compiled_functions_are_recognised() -> None:
    """Or the rule about generators could not fail."""
    few = of_packages("lpma")[:20]
    assert list(modules.generators(few)) == []
    assert "were recognised" in next(modules.generators([source("lpma/a.py", "@part\ndef a(): 0")]))


def test_code_is_counted_without_prose() -> None:
    text = '"""a\n\nb"""\n\n# c\nd = 1\n\ndef f():\n    """g"""\n    return d\n'
    assert modules.lines_of_code(source("lpma/a.py", text)) == 3


@pytest.mark.parametrize(
    "text, problem",
    [
        ("see `lpma.Grph`", "there is no lpma.Grph"),
        ("call `no_such_name_of_ours`", "there is no `no_such_name_of_ours`"),
        ("lpma/no_such_file.py", "there is no file lpma/no_such_file.py"),
        ("in lpma/no_such_folder/", "there is no folder"),
        ("run `make nothing-such`", "there is no target nothing-such"),
        ("[here](nowhere.md)", "there is no file nowhere.md"),
        ("[here](nowhere)", "the link nowhere leads nowhere"),
    ],
)
def test_a_reference_to_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    monkeypatch.setattr(references, "text_of", lambda name: text)
    references.prose.cache_clear()
    monkeypatch.setattr(references, "words_of_code", lambda: frozenset({"make"}))
    rules = (references.paths, references.names, references.links)
    found = [line for rule in rules for line in rule(["page.md"])]
    references.prose.cache_clear()
    assert any(problem in line for line in found), found
    assert (ROOT / "Makefile").is_file()
