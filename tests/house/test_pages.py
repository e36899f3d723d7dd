"""Every example of the README and of docs/ runs: block by block, in the order of the page.

`tests/support/pages.py` says what a page may hold. What a page runs only where something is there
(a broker, a GPU, a dataset, a library that is not installed) is a test of its own, of the whole
page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ingest import datasets
from tests.conftest import missing, real_graph
from tests.support.hidden import EXTRAS, modules_of
from tests.support.pages import BROKER, ROOT, Block, Reader, agrees, blocks

# The notes are a diary: what they call was so on their day.
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if not {"notes", "_build", "generated"} & set(path.relative_to(ROOT).parts)
)


def is_there(need: str) -> bool:
    """Whether a block that needs this is run without more ado: it is an extra or a library."""
    if need in ("kafka", "gpu", *datasets.names()):
        return False
    modules = modules_of(need) if need in EXTRAS else [need]
    return bool(modules) and all(find_spec(module) is not None for module in modules)


def absent(block: Block) -> str:
    """What of its needs is not there without more ado; "" if nothing."""
    return next((need for need in sorted(block.needs) if not is_there(need)), "")


def cases() -> Iterator[Any]:
    """(page, what is needed): "" for what is there, and all else that some block needs."""
    for page in PAGES:
        try:
            found = [block for block in blocks(page.read_text("utf-8")) if block.not_run is None]
            needs = {absent(block) for block in found}
        except AssertionError:
            needs = {""}  # the test says what is wrong
        for need in sorted(needs - {"soc-sign-bitcoinotc"}):  # the tutorial's: test_tutorial.py
            name = str(page.relative_to(ROOT))
            marks = [pytest.mark.gpu] if need == "gpu" else []
            by_itself = name == "README.md" and need != "kafka"
            marks.append(pytest.mark.system if by_itself else pytest.mark.integration)
            yield pytest.param(page, need, id=f"{name}-{need}" if need else name, marks=marks)


@pytest.mark.parametrize("page, need", list(cases()))
def test_a_page_does_as_it_says(
    page: Path,
    need: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    broker = BROKER
    if need == "kafka":
        broker = request.getfixturevalue("broker").bootstrap
    elif need == "gpu":
        request.getfixturevalue("cupy")
    elif need in datasets.names():
        real_graph(need)
    elif need:
        missing(need, f"{need} is not installed")
    monkeypatch.chdir(tmp_path)
    if need not in datasets.names():
        monkeypatch.delenv("LPMA_DATA", raising=False)
    with Reader(page, tmp_path, broker) as reader:
        for block in blocks(page.read_text("utf-8")):
            if block.not_run is None and absent(block) in ("", need):
                reader.run(block)


# The reader itself ------------------------------------------------------------------------------

PAGE = """
<!-- needs: kafka -->
```python
1 + 1  # → 2
```

<!-- not run: it
never ends -->
```sh
sleep inf
```
```sh
echo one; echo two >&2
```

```text
one
two
```
"""


def test_what_is_read_of_a_page() -> None:
    first, second, third = blocks(PAGE)
    assert (first.language, first.needs, first.line) == ("python", frozenset({"kafka"}), 4)
    assert (second.not_run, second.needs) == ("it never ends", frozenset())
    assert (third.prints, third.not_run) == ("one\ntwo\n", None)


@pytest.mark.parametrize("text, said", [
    ("text\n\n    indented", "indented"),
    ("<!-- needs: gpu -->\ntext", "no block"),
    ("<!-- needs: gpu -->\n```json\n{}\n```", "no block"),
])  # fmt: skip
def test_what_a_page_may_not_hold(text: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        blocks(text)


@pytest.mark.parametrize("text", [
    "```python\n1 + 1  # → 3\n```",
    "```python\nraise AssertionError\n```",
    "```python\nx = 1  # → 1\n```",
    "```python\nprint(1)\n```\n```text\n2\n```",
    "```sh\necho 1\n```\n\n```text\n2\n```",
    "```sh\nfalse\ntrue\n```",
])  # fmt: skip
def test_a_page_that_is_wrong_fails(text: str, tmp_path: Path) -> None:
    (block,) = blocks(text)
    with Reader(tmp_path / "page", tmp_path) as reader, pytest.raises(AssertionError):
        reader.run(block)


def test_one_shell_and_one_namespace(tmp_path: Path) -> None:
    text = "```python\nx = 1\n```\n```sh\nX=2\n```\n```sh\necho $X\n```\n```text\n2\n```\n"
    with Reader(tmp_path / "page", tmp_path) as reader:
        for block in blocks(text + "```python\nx  # → 1\n```"):
            reader.run(block)


# Between the pages ------------------------------------------------------------------------------

_TOPIC = re.compile(
    r"--(?:topic|reply-topic) ([\w-]+)"
    r'|kafka\.produce(?:_many)?\("([\w-]+)"'
    r'|_topic": "([\w-]+)"'
    r"|for topic in \((.+)\):"
)
_PORT = re.compile(r"(?:localhost:|--(?:serve|address|metrics) )(\d+)")
_PATH = re.compile(
    r"(?<![\w/.<{-])(?<!/ \")([\w-]+\.(?:log|lpma|csv|jsonl|npz|parquet|png|mtx|gexf|graphml))\b"
)
_FOLDER = re.compile(
    r"(?:--checkpoint|-c) ([\w-]+)"
    r'|Pipeline\b.*, (?:checkpoint=)?"([\w-]+)"'
    r'|(?:resume|as_of)\("([\w-]+)"'
)


@pytest.mark.parametrize(
    "kind", [_TOPIC, _PORT, _PATH, _FOLDER], ids=["topics", "ports", "paths", "folders"]
)
def test_no_two_pages_use_the_same(kind: re.Pattern[str]) -> None:
    """A reader runs several of them, in one folder and with one broker: what one wrote another
    would read, and answer otherwise than it says."""
    used: dict[str, set[str]] = {}
    for page in PAGES:
        for block in blocks(page.read_text("utf-8")):
            # A log of a page's own keeps its topics to itself.
            if block.not_run is None and (kind is not _TOPIC or "kafka" in block.needs):
                for groups in kind.findall(block.text):
                    for name in filter(None, [groups] if isinstance(groups, str) else groups):
                        used.setdefault(name, set()).add(page.name)
    used.pop("9092", None)  # the broker
    assert len(used) >= 4
    assert {name: pages for name, pages in used.items() if len(pages) > 1} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_waits_for_ever(page: Path) -> None:
    for block in blocks(page.read_text("utf-8")):
        if block.language == "sh":
            assert not re.search(r"^\s*(until|while) ", block.text, re.MULTILINE), block.text


def test_a_page_has_no_extra_that_it_does_not_say_it_needs(tmp_path: Path) -> None:
    """Neither in its own process nor in those that it starts, and the others are there."""
    text = """
```python
import starlette
```
<!-- needs: serve -->
```python
starlette.__name__  # → 'starlette'
```
```sh
python -c 'import starlette'
```
<!-- needs: metrics, serve -->
```sh
python -c 'import starlette, prometheus_client'
```
"""
    own, served, shell, both = blocks(text)
    with Reader(tmp_path / "page", tmp_path) as reader:
        with pytest.raises(ModuleNotFoundError, match="starlette"):
            reader.run(own)
        served.text = "import starlette\n" + served.text
        reader.run(served)
        reader.run(both)
        with pytest.raises(AssertionError, match="No module named 'starlette'"):
            reader.run(shell)


def test_what_stands_for_anything() -> None:
    assert agrees("a ... c", "a  b\nc")
    assert not agrees("a ... c", "a b")
