"""The page's files as they are sent: asked for again each time, gzip, the policy."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import ingest.service
import lpma

from .conftest import Served
from .http import ask

Serve = Callable[..., Served]
FOLDER = Path(ingest.service.__file__).parent / "page"


@pytest.fixture
def url(serve_store: Serve) -> str:
    return serve_store(lpma.from_edges([1], [2], device="cpu")).url


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_is_made_of_its_own_files_alone(url: str, path: str) -> None:
    """It allows no other script or style, is not cached, and names only files that are there."""
    found = ask(url, "GET", path)
    policy = found.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'; style-src 'self';" in policy
    assert found.headers["cache-control"] == "no-store"
    text = found.body.decode()
    named = re.findall(r'(?:href|src)="(/page/[^"]+)"', text)
    assert len(named) >= 4
    assert all(ask(url, "GET", each).status == 200 for each in named)
    assert not re.search(r"<style|<script>| style=| on[a-z]+=|https?:", text)


def test_a_file_is_sent_again_when_it_has_changed(url: str) -> None:
    first = ask(url, "GET", "/page/main.js")
    assert first.headers["cache-control"] == "no-cache"
    assert "javascript" in first.headers["content-type"]
    assert first.body == (FOLDER / "main.js").read_bytes()
    again = ask(url, "GET", "/page/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert again.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["page.css", "walk.js"])
def test_files_are_sent_with_gzip_to_who_takes_it(url: str, name: str) -> None:
    plain = ask(url, "GET", f"/page/{name}")
    packed = ask(url, "GET", f"/page/{name}", headers={"Accept-Encoding": "br, gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.body) == plain.body
    assert 2 * len(packed.body) < len(plain.body)


@pytest.mark.parametrize(
    "path", ["/page/nothing.js", "/page/../page.py", "/page/%2e%2e%2fpage.py", "/page/charts",
             "/page/x/y/main.js", "/page/"],
)  # fmt: skip
def test_no_other_file_is_sent(url: str, path: str) -> None:
    above = "/../" in path or "%2e" in path  # which the guard refuses
    assert ask(url, "GET", path).status == (400 if above else 404)


def test_scripts_write_no_html() -> None:
    """What comes from a stream is only ever text."""
    for path in FOLDER.glob("*.js"):
        source = path.read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", source
        )
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", source)


def test_the_scripts_are_a_few_hundred_lines() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in FOLDER.iterdir()}
    assert all(count <= 300 for count in lines.values()), lines
