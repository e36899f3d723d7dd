"""What the live page costs a browser: the first paint, its charts, and each update of them.

A pipeline in a process of its own ingests the messages of a made-up town, ten batches a second,
and serves the page; headless Chromium, which draws in software, shows it. For each cold load:

    first paint   until text is on the screen
    charts        until all six are drawn
    update        the main thread's time on a core for one event, which moves three charts, in ms
    frame 50 %    the work before a frame in which a chart is drawn, in ms
    frame 99 %

Goals: a first paint within 1 s, and a frame within 16 ms. Requires the extras [serve] and [test],
and Chromium.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from ingest import Pipeline, SqliteLog, encode_updates
from ingest.demo.town import make_town

from ..report import Report, Setting
from ..stopwatch import WrongAnswer

BATCHES_PER_S = 10
OPERATIONS = 300  # in each
_FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
# How long the work before each frame takes, all that was asked for with it together.
_TIME_FRAMES = """
window.frames_ms = [];
const asked = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (call) => asked((now) => {
  const begin = performance.now();
  call(now);
  const spent = performance.now() - begin;
  const last = window.frames_ms.at(-1);
  if (last?.now === now) last.ms += spent;
  else window.frames_ms.push({ now, ms: spent });
});
"""
_DRAWN = """() => [...document.querySelectorAll(".chart")]
  .every((host) => host.querySelector("path, rect"))"""
PATIENCE_S = 60.0


def page(setting: Setting) -> Report:
    loads, seconds = (1, 5.0) if setting.quick else (5, 20.0)
    report = Report("page", "the live page in headless Chromium: milliseconds")
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if program is None:
        report.notes.append("There is no Chromium here.")
        return report
    from playwright.sync_api import sync_playwright

    with _serving() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        for load in range(loads):
            report.add({"load": load, **_load(browser, url, seconds)})
        browser.close()
    return report


def _load(browser: Any, url: str, seconds: float) -> dict[str, float]:
    """One visit by a browser that has nothing kept."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    tab = context.new_page()
    tab.add_init_script(_TIME_FRAMES)
    meter = context.new_cdp_session(tab)
    meter.send(
        "Performance.enable", {"timeDomain": "threadTicks"}
    )  # what others use is not counted
    tab.goto(url)
    until = time.monotonic() + PATIENCE_S
    while not tab.evaluate(_DRAWN):
        if time.monotonic() > until:
            raise WrongAnswer("the page drew no charts")
        tab.wait_for_timeout(10)
    charts = tab.evaluate("performance.now()")
    paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    tab.wait_for_timeout(4000)  # until the neighbourhood is at rest
    before, version = _spent(meter), int(tab.inner_text("#version").replace(",", ""))
    tab.evaluate("window.frames_ms.length = 0")
    tab.wait_for_timeout(1000 * seconds)
    spent = _spent(meter) - before
    updates = int(tab.inner_text("#version").replace(",", "")) - version
    frames = [frame["ms"] for frame in tab.evaluate("window.frames_ms") if frame["ms"] > 1.0]
    context.close()
    row = {"first paint": paint, "charts": charts, "update": 1000 * spent / max(1, updates)}
    frame = (float(np.quantile(frames, share)) for share in (0.5, 0.99))
    return row | dict(zip(("frame 50 %", "frame 99 %"), frame, strict=True))


def _spent(meter: Any) -> float:
    """Seconds of the main thread so far."""
    metrics = meter.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


@contextmanager
def _serving() -> Iterator[str]:
    """The page of a stream in another process; its address."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join()


def _serve(told: Any) -> None:
    from ingest.service.app import Service
    from ingest.service.context import Context

    lpma.compile("cpu")
    town = make_town(200_000)
    with tempfile.TemporaryDirectory() as folder, SqliteLog(Path(folder) / "log") as log:
        log.create_topic("updates")
        graph = lpma.Graph(device="cpu", names=True, predecessors=True)
        settings: Any = {"names": True, "batch_interval": 1 / BATCHES_PER_S}
        with Pipeline(log, graph, Path(folder) / "state", **settings) as pipeline:
            running = threading.Thread(target=pipeline.run)
            running.start()
            served = Context(pipeline.requests, graph, pipeline, "messages in a made-up town")
            with Service(served) as service:
                told.send(service.url)
                _feed(log, town, told)
            pipeline.stop()
            running.join()


def _feed(log: SqliteLog, town: Any, told: Any) -> None:
    """Write evenly until told to stop."""
    src, dst = town.names[town.messages.src], town.names[town.messages.dst]
    first, next_at = 0, time.monotonic()
    while not told.poll(max(0.0, next_at - time.monotonic())):
        rows = slice(first, first + OPERATIONS)
        log.produce("updates", encode_updates(src[rows], dst[rows], names=True))
        first = (first + OPERATIONS) % (len(src) - OPERATIONS)
        next_at += 1 / BATCHES_PER_S
