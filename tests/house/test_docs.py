"""The pages build without a warning, have every public name, and the README's picture is drawn."""

from __future__ import annotations

import html
import importlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.ingest.service.browser import open_browser
from tests.support.hidden import VARIABLE, not_brought_by, write_hook
from tests.support.turns import made_once

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What a reader sees cut: text that runs out of its box, where no box around it scrolls.
CUT = """() => [...document.querySelectorAll(
    "article h1, article h2, article h3, article p, article dt, article pre, article table, "
    + "article img, .prev-next-title")].filter(box => {
  if (!box.clientWidth) return false;
  const own = box.getBoundingClientRect();
  const right = own.left + Math.max(own.width, box.scrollWidth);
  for (let around = box; around !== document.body; around = around.parentElement)
    if (/auto|scroll/.test(getComputedStyle(around).overflowX)) return false;
    else if (right > around.getBoundingClientRect().right + 1) return true;
  return right > innerWidth;
}).map(box => `${box.tagName} ${box.textContent.slice(0, 40)}`)"""
NEEDED = ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_copybutton", "sphinx_design")
README_BYTES = 60_000

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built as `make docs` builds them, in a fresh clone: with nothing but what the
    extra `docs` brings."""
    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        missing("docs", f"{', '.join(absent)} cannot be imported: pip install '.[docs]'")
    return made_once(tmp_path_factory, "pages", build)


def build(folder: Path) -> None:
    """What nothing but the extra `docs` brings is hidden from Sphinx."""
    hook = folder / ".hook"
    hook.mkdir(exist_ok=True)
    write_hook(hook)
    hidden = not_brought_by("docs")
    assert {"hypothesis", "pytest"} <= hidden
    finished = subprocess.run(
        [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going",
         "--nitpicky", "--quiet", str(DOCS), str(folder)],
        env=os.environ | {
            "PYTHONPATH": f"{hook}{os.pathsep}{ROOT}", VARIABLE: " ".join(sorted(hidden))
        }, cwd=ROOT,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr


class Links(HTMLParser):
    """What a page links to within the pages, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.places.add(value)
            if name in ("href", "src") and value and not re.match(r"(https?|data|mailto):", value):
                self.links.add(value)


def test_links_within_the_pages_lead_somewhere(pages: Path) -> None:
    written = (path for path in pages.rglob("*.html") if "_static" not in path.parts)
    read = {path: Links(path.read_text("utf-8")) for path in written}
    broken = []
    for path, page in read.items():
        for link in page.links:
            file, _, place = link.partition("#")
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            there = read[target].places if target in read else None
            if not target.exists() or (place and there is not None and place not in there):
                broken.append(f"{path.relative_to(pages)}: {link}")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("package", ["lpma", "algorithms", "ingest"])
def test_every_public_name_has_a_page_or_a_place_among_the_errors(
    pages: Path, package: str
) -> None:
    reference = pages / "reference"
    places = Links((reference / f"{package}.html").read_text("utf-8")).places
    names = [name for name in importlib.import_module(package).__all__ if name[0] != "_"]
    of_their_own = {path.stem for path in (reference / "generated").glob(f"{package}.*.html")}
    full = {f"{package}.{name}" for name in names}
    assert full - places - of_their_own == set()
    for name in full & of_their_own:
        assert name in Links((reference / "generated" / f"{name}.html").read_text("utf-8")).places


def test_the_reference_says_what_an_option_may_be(pages: Path) -> None:
    for function, said in (
        ("pagerank", "a number from 0 to 1 (default: 0.85)"),
        ("diversity", "one of component, core, truss"),
        ("bfs", "a vertex"),
    ):
        page = pages / "reference" / "generated" / f"algorithms.{function}.html"
        assert said in page.read_text("utf-8")


def test_every_command_has_a_page(pages: Path) -> None:
    from ingest.cli.commands import COMMANDS

    listed = (pages / "reference" / "commands.html").read_text("utf-8")
    for name in COMMANDS:
        page = pages / "reference" / "generated" / "commands" / f"{name}.html"
        assert f"lpma {name}" in page.read_text("utf-8")
        assert f"{name}.html" in listed


def test_every_setting_is_in_the_reference(pages: Path) -> None:
    from ingest.cli._config import all_keys

    places = (pages / "reference" / "settings.html").read_text("utf-8")
    absent = [key for key in all_keys() if f">{key.rpartition('.')[2]}<" not in places]
    assert absent == []


def test_commands_keep_their_hyphens(pages: Path) -> None:
    """Typographic quotes and dashes are no use to who copies a command."""
    smart = re.compile("[\u2018\u2019\u201c\u201d]|\u2013\u2013|\u2014")
    wrong = []
    for path in (pages / "reference" / "generated" / "commands").glob("*.html"):
        article = path.read_text("utf-8").partition("<article")[2]
        wrong += [f"{path.name}: {found[0]}" for found in smart.finditer(article)]
    assert wrong == []


def test_every_page_is_in_a_menu(pages: Path) -> None:
    """No page that nobody finds: each is linked to from the page of its section, or from home."""
    linked = set()
    written = [path for path in pages.rglob("*.html") if "_static" not in path.parts]
    for path in written:
        for link in Links(path.read_text("utf-8")).links:
            if link.partition("#")[0]:
                linked.add((path.parent / link.partition("#")[0]).resolve())
    made_by_sphinx = {"genindex.html", "search.html", "py-modindex.html", "index.html"}
    absent = [path for path in written if path.resolve() not in linked]
    assert [str(p.relative_to(pages)) for p in absent if p.name not in made_by_sphinx] == []


def test_a_names_page_is_called_by_the_name_and_says_where_it_is(pages: Path) -> None:
    """The menu has the titles: with their modules, they would be cut in the middle of a word."""
    written = list((pages / "reference" / "generated").glob("*.html"))
    assert written
    for path in written:
        article = re.sub("<[^>]+>", "", path.read_text("utf-8").partition("<article")[2])
        name = path.stem.rpartition(".")[2]
        assert not any(part.startswith("_") for part in path.stem.split(".")), path.stem
        assert re.search(rf"^{re.escape(name)}#", article.strip(), re.M), path.stem
        assert path.stem in article, path.stem


def test_signatures_are_python(pages: Path) -> None:
    """A default such as <function f> keeps Sphinx from reading a signature: it is then one line,
    with the whole path of each type."""
    wrong = []
    for path in (pages / "reference" / "generated").glob("*.html"):
        for shown in re.findall(r'<dt class="sig[^"]*py".*?</dt>', path.read_text("utf-8"), re.S):
            text = html.unescape(re.sub("<[^>]+>", "", shown))
            if re.search(r"<\w+|Annotated\[|ForwardRef|~\w", text):
                wrong.append(f"{path.stem}: {text[:80]}")
    assert wrong == []


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_cut(pages: Path, chromium: str, width: int) -> None:
    """On a telephone and on a wide screen: what is wider than the page wraps or scrolls."""
    cut = []
    with open_browser(chromium) as browser:
        page = browser.new_page(viewport={"width": width, "height": 800})
        for path in sorted(pages.rglob("*.html")):
            if "_static" not in path.parts:
                page.goto(path.as_uri(), wait_until="domcontentloaded")
                name = path.relative_to(pages)
                cut += [f"{name}: {what}" for what in page.evaluate(CUT)]
    assert not cut, "\n".join(cut)


def test_the_readmes_picture_is_as_drawn(tmp_path: Path) -> None:
    """`python -m pictures.overview` in docs/ draws it. Releases of matplotlib may write the same
    picture in other words, so only what it says and how large it is are compared."""
    code = "import sys; from pathlib import Path; from pictures.overview import write; "
    subprocess.run(
        [sys.executable, "-c", f"{code} write(Path(sys.argv[1]))", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{DOCS}"}, check=True, timeout=300,
    )  # fmt: skip
    for name in ("overview-light.svg", "overview-dark.svg"):
        kept, drawn = (folder / name for folder in (DOCS, tmp_path))
        assert said(kept) == said(drawn), "draw it anew"
        assert kept.stat().st_size <= README_BYTES


def said(picture: Path) -> list[str]:
    """The words of a picture, which matplotlib notes beside the outlines of their letters, and the
    colours of its shapes."""
    text = picture.read_text("utf-8")
    return re.findall(r"<!-- (.+?) -->", text) + re.findall(r"fill: (#\w+)", text)
