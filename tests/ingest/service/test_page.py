"""The live page in a real browser: what it shows, what it does when told, and what it never does.

LPMA_ARTEFACTS=folder keeps screenshots there. LPMA_PICTURES=1 makes the pictures of the README
anew: docs/page-light.png and docs/page-dark.png."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest.demo.town import Town, make_town
from ingest.service.app import Service
from ingest.service.sampling import parse_rule
from ingest.service.security import Access

from .browser import Tab, open_browser
from .conftest import Served

Serve = Callable[..., Served]
DOCS = Path(__file__).parents[3] / "docs"
HAS_ROWS = "id => document.getElementById(id).querySelectorAll('tbody tr').length > 0"


class Live:
    """A town whose messages go on until the test ends, and the service that shows it."""

    def __init__(self, served: Served, town: Town) -> None:
        self.served, self.town = served, town
        self.service = Service(served.context)
        self.url = self.service.url
        self._stop = threading.Event()
        self._sent = 0
        self.send(10_000)
        served.settle()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def send(self, count: int) -> None:
        first, messages = self._sent % (len(self.town.messages) - count), self.town.messages
        rows, self._sent = slice(first, first + count), self._sent + count
        names = self.town.names
        assert self.served.log is not None
        data = ingest.encode_updates(
            names[messages.src[rows]], names[messages.dst[rows]], names=True
        )
        self.served.log.produce("updates", data)

    def _go_on(self) -> None:
        rng = np.random.default_rng(1)
        while not self._stop.wait(0.1):
            wave = 250 + 120 * np.sin(time.monotonic() / 9)
            self.send(int(wave + rng.integers(0, 60)))

    def restart(self) -> None:
        """Serve at the same address again."""
        self.service = Service(self.served.context, self.url.removeprefix("http://"))

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.service.close()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    with open_browser(chromium) as opened:
        yield opened


@pytest.fixture
def live(serve_stream: Serve, browser: Any, request: pytest.FixtureRequest) -> Iterator[Live]:
    rules, interval = getattr(request, "param", (("lag > 100000", "rate > 1"), 1.0))
    settings = {
        "track": ("core", "triangles", "components"),
        "batch_interval": 0.05,
        "checkpoint_interval": interval,
    }
    served = serve_stream(names=True, predecessors=True, checkpoint=True, settings=settings)
    served.context.title = "messages in a made-up town"
    served.context.alerts = tuple(parse_rule(rule) for rule in rules)
    made = Live(served, make_town(100_000))
    yield made
    made.close()


@pytest.fixture
def tab(browser: Any, request: pytest.FixtureRequest) -> Iterator[Tab]:
    made = Tab(browser, **getattr(request, "param", {}))
    yield made
    made.context.close()


def opened(tab: Tab, url: str) -> Any:
    """The page once its charts are there and a vertex is shown."""
    tab.page.goto(url)
    tab.until("document.querySelectorAll('#graph g').length > 1")
    tab.until("() => ['rate', 'density', 'cores', 'degrees'].every(name => "
              "document.querySelector(`#chart-${name} svg`))")  # fmt: skip
    return tab.page


def test_figures_and_charts_move(live: Live, tab: Tab) -> None:
    page = opened(tab, live.url)
    assert page.inner_text("#title") == "messages in a made-up town"
    assert page.inner_text("#live") == "live"
    before = page.inner_text("#version"), page.locator("#chart-rate").screenshot()
    tab.until("old => document.getElementById('version').textContent !== old", before[0])
    tab.until("document.getElementById('chart-rate').chart.values[0].at(-1) > 100")
    page.wait_for_timeout(1000)
    assert page.locator("#chart-rate").screenshot() != before[1]
    for name in ("lag", "age", "letters", "median", "rate", "edges", "vertices"):
        tab.until("id => /^[0-9][0-9,.]*$/.test(document.getElementById(id).textContent)", name)
    tab.until("document.querySelectorAll('#chart-cores circle').length > 3")
    tab.until("document.querySelectorAll('#chart-degrees rect').length > 3")
    densities = page.locator("#chart-density rect").all()
    levels = live.served.context.graph.levels
    assert len(densities) in (levels, levels + 1)  # it may have grown meanwhile
    tab.check(live.url)


def test_a_click_walks_on(live: Live, tab: Tab) -> None:
    page = opened(tab, live.url)
    there = page.evaluate("[...document.querySelectorAll('#graph g')].map(g => g.dataset.word)")
    here = page.input_value("#walk-vertex")
    other = next(word for word in there if word != here)
    page.locator(f'#graph g[data-word="{other}"] circle').dispatch_event("click")
    tab.until("word => document.getElementById('walk-vertex').value === word", other)
    after = page.evaluate("[...document.querySelectorAll('#graph g')].map(g => g.dataset.word)")
    assert set(there) - set(after) == set()
    assert len(after) > len(there)
    assert page.locator("#trail li").all_inner_texts() == [here, other]
    assert other in live.served.context.graph
    assert "core number" in page.get_attribute(f'#graph g[data-word="{other}"]', "aria-label")
    page.locator("#trail button").first.click()
    tab.until("word => document.getElementById('walk-vertex').value === word", here)
    assert page.locator("#trail li").all_inner_texts() == [here]
    page.fill("#walk-vertex", "Nobody At All")
    page.click("#walk-form button")
    tab.until("document.getElementById('walk-said').textContent.includes('there is no vertex')")
    tab.check(live.url, lambda problem: "404" in problem)


def test_a_question_is_answered(live: Live, tab: Tab) -> None:
    """With its version and its place in the stream."""
    page = opened(tab, live.url)
    vertex = page.input_value("#walk-vertex")
    page.fill("#ask-u", vertex)
    page.click("#ask-form button")
    page.wait_for_selector("#answer .found")
    assert page.inner_text("#answer .found").endswith(("vertex", "vertices"))
    assert "version" in page.inner_text("#answer .place")
    assert "in the stream" in page.inner_text("#answer .place")
    other = page.locator("#answer li button").first.inner_text()
    page.select_option("#ask-kind", "edges")
    page.fill("#ask-v", other)
    page.click("#ask-form button")
    tab.until("document.querySelector('#answer .found')?.textContent.startsWith('Weight')")
    page.select_option("#ask-kind", "hops")
    page.fill("#ask-k", "2")
    page.click("#ask-form button")
    tab.until("document.querySelectorAll('#answer li').length > 20")
    for kind, said in (("degree", "Degree "), ("vertices", "It is a vertex"), ("predecessors", "")):
        page.select_option("#ask-kind", kind)
        page.click("#ask-form button")
        tab.until(
            "said => document.querySelector('#answer .found')?.textContent.startsWith(said)", said
        )
    page.fill("#ask-u", "x" * 1050)
    page.click("#ask-form button")
    page.wait_for_selector("#answer .error")
    tab.check(live.url, lambda problem: "422" in problem)


def test_a_dead_letter_and_a_checkpoint_are_shown(live: Live, tab: Tab) -> None:
    page = opened(tab, live.url)
    assert live.served.log is not None
    live.served.log.produce("updates", b"<img src=x onerror=alert(1)>\xff")
    tab.until(HAS_ROWS, "letters-list")
    assert page.inner_text("#letters") == "1"
    assert "1 malformed" in page.inner_text("#letters-said")
    row = page.locator("#letters-list tbody tr").first.inner_text()
    assert "updates 0" in row
    assert "<img src=x onerror=alert(1)>\\xff" in row
    assert page.get_attribute("#gauge-letters", "data-tone") == "warn"
    tab.until(HAS_ROWS, "checkpoints-list")
    assert "the stream stood still" in page.inner_text("#checkpoint-said")
    tab.check(live.url)


def test_alerts_and_kept_figures_are_shown(live: Live, tab: Tab) -> None:
    page = opened(tab, live.url)
    tab.until(
        "document.querySelector('#alerts-list [data-tone=warn]')?.textContent.includes('rate')"
    )
    assert "1 alert: rate > 1" in page.inner_text("#verdict")
    tab.until("document.querySelectorAll('#figures-list dd').length === 3")
    tab.check(live.url)


def test_a_lost_connection_is_said_and_comes_back(live: Live, tab: Tab) -> None:
    page = opened(tab, live.url)
    live.service.close()
    tab.until("document.getElementById('live').dataset.state === 'lost'")
    assert "connection is lost" in page.inner_text("#verdict")
    live.restart()
    tab.until("document.getElementById('live').dataset.state === 'live'")
    version = page.inner_text("#version")
    tab.until("old => document.getElementById('version').textContent !== old", version)
    tab.check(live.url, lambda problem: "Failed to load" in problem or "net::" in problem)


LIGHT, DARK = {"color_scheme": "light"}, {"color_scheme": "dark"}
NARROW = [{"viewport": {"width": width, "height": 800}} for width in (320, 400, 900)]
PAPER = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize("tab", [DARK], indirect=True)
def test_dark_and_light(live: Live, tab: Tab) -> None:
    """As the system has it, or as was chosen."""
    page = opened(tab, live.url)
    dark = page.evaluate(PAPER)
    page.click("#theme")
    tab.until(f"dark => {PAPER} !== dark", dark)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.click("#theme")
    tab.until(f"dark => {PAPER} === dark", dark)
    page.reload()
    tab.until(f"dark => {PAPER} === dark", dark)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.check(live.url)


@pytest.mark.parametrize("tab", NARROW,
                         indirect=True)  # fmt: skip
def test_nothing_sticks_out_sideways(live: Live, tab: Tab) -> None:
    page = opened(tab, live.url)
    assert live.served.log is not None
    live.served.log.produce("updates", b"w" * 300)
    tab.until(HAS_ROWS, "letters-list")
    page.fill("#ask-u", page.input_value("#walk-vertex"))
    page.click("#ask-form button")
    page.wait_for_selector("#answer .found")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    tab.picture(f"{page.viewport_size['width']}")
    tab.check(live.url)


def test_the_keyboard_reaches_everything(live: Live, tab: Tab) -> None:
    """Tab comes to every control, and shows where it is; arrows and Enter walk."""
    page = opened(tab, live.url)
    wanted = page.evaluate("""() => {
      const all = document.querySelectorAll("a[href], button, input, select, [tabindex='0']");
      const shown = [...all].filter((each) => each.checkVisibility() && !each.closest("dialog"));
      shown.forEach((each, i) => { each.dataset.wanted = i; });
      return shown.length;
    }""")
    reached = set()
    for _ in range(wanted + 8):
        page.keyboard.press("Tab")
        found = page.evaluate("""() => [document.activeElement.dataset?.wanted ?? null,
          getComputedStyle(document.activeElement).outlineStyle,
          Boolean(document.activeElement.closest("svg"))]""")
        reached.add(found[0])
        assert found[0] is None or found[2] or found[1] != "none", found
    assert reached >= {str(number) for number in range(wanted)}
    page.focus("#graph g[tabindex='0']")
    here = page.evaluate("document.activeElement.dataset.word")
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
        if page.evaluate("document.activeElement.dataset.word") != here:
            break
    other = page.evaluate("document.activeElement.dataset.word")
    assert other != here
    page.keyboard.press("Enter")
    tab.until("word => document.getElementById('walk-vertex').value === word", other)
    assert page.evaluate("document.activeElement.dataset.word") == other
    tab.check(live.url)


def test_every_control_has_a_name(live: Live, tab: Tab) -> None:
    page = opened(tab, live.url)
    nameless = page.evaluate("""() =>
      [...document.querySelectorAll("button, input, select, a[href], [role]")]
      .filter((each) => each.checkVisibility())
      .filter((each) => !(each.textContent.trim() || each.getAttribute("aria-label")
        || each.labels?.length || each.getAttribute("aria-labelledby")))
      .map((each) => each.outerHTML.slice(0, 80))""")
    assert nameless == []
    tab.check(live.url)


@pytest.mark.parametrize("tab", [{"reduced_motion": "reduce"}], indirect=True)
def test_reduced_motion(live: Live, tab: Tab) -> None:
    """The neighbourhood is at rest when it is shown, and nothing pulses."""
    page = opened(tab, live.url)
    places = (
        "[...document.querySelectorAll('#graph g')].map(g => g.getAttribute('transform')).join()"
    )
    before = page.evaluate(places)
    page.wait_for_timeout(300)
    assert page.evaluate(places) == before
    assert (
        page.evaluate("getComputedStyle(document.getElementById('live'), '::before').animationName")
        == "none"
    )
    tab.check(live.url)


def test_a_saved_store(serve_store: Serve, browser: Any, tab: Tab) -> None:
    """What a stream has is not shown."""
    town = make_town(20_000)
    graph = lpma.Graph(device="cpu", names=True)
    graph.insert(town.names[town.messages.src], town.names[town.messages.dst])
    served = serve_store(graph)
    with Service(served.context) as service:
        page = opened(tab, service.url)
        tab.until("document.getElementById('live').textContent === 'saved store'")
        tab.until("document.getElementById('edges').textContent !== '–'")
        assert not page.is_visible("#gauge-lag")
        assert not page.is_visible("#letters-list")
        assert page.is_visible("#chart-density svg")
        page.fill("#ask-u", page.input_value("#walk-vertex"))
        page.click("#ask-form button")
        page.wait_for_selector("#answer .found")
        tab.picture("store")
        tab.check(service.url)


def test_a_token_is_asked_for_once(serve_store: Serve, browser: Any, tab: Tab) -> None:
    """A wrong one is asked for again; it is kept for this tab alone, and is in no address."""
    token = "a-token-of-many-characters"
    served = serve_store(lpma.from_edges([1, 2, 3], [2, 3, 1], device="cpu"))
    with Service(served.context, 0, Access(read_token=token)) as service:
        tab.page.goto(service.url)
        tab.page.wait_for_selector("#token[open]")
        for text in ("not-the-token-at-all", token):
            tab.page.wait_for_selector("#token[open]")
            tab.page.fill("#token-text", text)
            tab.page.keyboard.press("Enter")
        tab.until("document.querySelectorAll('#graph g').length === 2")
        assert not tab.page.is_visible("#token")
        assert tab.page.evaluate("sessionStorage.getItem('lpma-token')") == token
        assert tab.page.evaluate("localStorage.length") == 0
        tab.page.reload()
        tab.until("document.querySelectorAll('#graph g').length === 2")
        assert not tab.page.is_visible("#token")
        tab.check(service.url, lambda problem: "401" in problem)


def test_the_endpoints_are_shown(live: Live, tab: Tab) -> None:
    tab.page.goto(f"{live.url}/docs")
    tab.page.wait_for_selector("article h3")
    paths = tab.page.locator("article h3").all_inner_texts()
    assert any("/v1/successors" in path for path in paths)
    assert tab.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    tab.picture("docs")
    tab.check(live.url)


@pytest.mark.skipif("LPMA_PICTURES" not in os.environ, reason="the README's pictures, on request")
@pytest.mark.parametrize("live", [(("lag > 10000", "checkpoint_age_s > 60"), 20.0)], indirect=True)
def test_the_pictures_of_the_readme(live: Live, browser: Any) -> None:
    from PIL import Image

    size = {"width": 1440, "height": 1660}
    tabs = {theme: Tab(browser, color_scheme=theme, viewport=size) for theme in ("light", "dark")}
    for tab in tabs.values():
        page = opened(tab, live.url)
        page.wait_for_timeout(5000)
        page.locator("#graph g.named text").nth(2).click()
    tab.page.wait_for_timeout(120_000)  # as much as the charts show
    for theme, tab in tabs.items():
        picture = Image.open(io.BytesIO(tab.page.screenshot()))
        target = DOCS / f"page-{theme}.png"
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)
        assert target.stat().st_size < 150_000
        tab.context.close()
