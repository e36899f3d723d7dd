"""A browser for the tests of the page: chromium, driven by Playwright.

What a page must never do is checked for every test: ask another host, write an error to the
console, or break its Content-Security-Policy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 20
_FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
_WATCH_POLICY = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""


@contextmanager
def open_browser(program: str) -> Iterator[Any]:
    """A headless chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        yield browser
        browser.close()


class Tab:
    """One page in a context of its own, and what it did."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE_S)
        self.page.add_init_script(_WATCH_POLICY)
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def until(self, script: str, argument: Any = None) -> None:
        """Wait until a JavaScript expression, or a function of the argument, is true. Playwright's
        own way of waiting evaluates text in the page, which its policy forbids."""
        until = time.monotonic() + PATIENCE_S
        while not self.page.evaluate(script, argument):
            assert time.monotonic() < until, f"not so in {PATIENCE_S} s: {script}"
            self.page.wait_for_timeout(50)

    def check(self, url: str, expected: Callable[[str], bool] = lambda problem: False) -> None:
        """That it did nothing that a page must not. expected: problems that the test caused."""
        assert [p for p in self.problems if not expected(p)] == []
        assert self.page.evaluate("window.violations") == []
        assert self.hosts == {urlsplit(url).netloc}

    def picture(self, name: str) -> None:
        """Keep a screenshot of the whole page, if LPMA_ARTEFACTS says where."""
        folder = os.environ.get("LPMA_ARTEFACTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=f"{folder}/page-{name}.png", full_page=True)
