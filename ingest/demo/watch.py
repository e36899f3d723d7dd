"""The demo's second reader of the stream: it keeps only a sliding window, tracks core numbers in
it, and lets results leave: what changed, and alerts.

    main       a process that is killed and resumed like the worker
    Listener   tells alerts as they come
    verify     compares all of it with what it must be

The window's only checkpoint is the empty one of its beginning. So what resumes makes every batch
again from the journal, and every result; the file of results takes each once.

What `verify` compares:
1. results: byte by byte, but for the run's name, with those of one replay that nobody killed
2. the window: with the edges of the whole graph that are new enough
3. core numbers, put together from the changes: with those computed of the window at once
4. the first alert: with a past view of the version before it
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import algorithms
import lpma
from lpma.arrays import to_host
from lpma.cpu.jit import telling
from lpma.file.atomic import atomic_write

from ..formats.results import Result, decode_result_line, result_line
from ..past import as_of
from ..pipeline.pipeline import Pipeline
from ..results.figures import rule_of
from ..results.reading import once, read_results
from ..sources.sqlite.log import SqliteLog
from ..state.directory import has_checkpoint
from ..types import Name
from .figures import named
from .stream import DemoStream, Watch
from .town import Circle
from .worker import DemoError, Files

LOOK_EVERY_S = 0.05
TOLD = 4  # alerts, as they come
NO_CHECKPOINT = 10**9  # operations, or seconds


def _settings(watch: Watch, results: Path) -> dict[str, Any]:
    return {
        "batch_size": watch.batch_size,
        "batch_interval": 0.25,
        "query_interval": 0.25,
        "checkpoint_operations": NO_CHECKPOINT,
        "checkpoint_interval": NO_CHECKPOINT,
        "replies": lambda reply: None,  # the worker answers
        "track": ["core"],
        "results": results,
        "alerts": [watch.rule],
    }


def new_window(watch: Watch, log: SqliteLog, files: Files, device: str) -> Pipeline:
    settings = _settings(watch, files.results)
    if has_checkpoint(files.window):
        return Pipeline.resume(files.window, log, device=device, **settings)
    graph = lpma.Graph(names=True, device=device)
    return Pipeline(log, graph, files.window, window=watch.width, **settings)


def main(directory: str, watch: Watch, device: str = "auto") -> None:
    """Keep the window of the log in `directory` until all is produced and applied."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the worker
    telling.silent = True
    files = Files(Path(directory))
    with SqliteLog(files.log) as log:
        pipeline = new_window(watch, log, files, device)
        try:
            pipeline.run(lambda p: files.finished.exists() and p.source.at_end())
            pipeline.run("end")
            assert pipeline.results is not None
            with atomic_write(files.watched) as file:
                file.write(json.dumps({"repeats": pipeline.results.repeats}).encode())
        finally:
            pipeline.close(checkpoint=False)


class Listener:
    """Tells of alerts in a file of results while it is written, of each once."""

    def __init__(self, path: Path, stream: DemoStream, tell: Callable[[str], None]) -> None:
        self._path = path
        self._stream = stream
        self._tell = tell
        self._finish = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Read to the file's end, and stop."""
        self._finish.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        told = 0
        for result in once(self._results()):
            if result.alert is not None and told < TOLD:
                told += 1
                self._tell("alert: " + in_words(result, self._stream))

    def _results(self) -> Iterator[Result]:
        """Whole lines only: a crash may leave half of one, which is cut off later."""
        offset = 0
        ends = False
        while not ends:
            ends = self._finish.wait(LOOK_EVERY_S)
            if not self._path.exists():
                continue
            with open(self._path, "rb") as file:
                file.seek(offset)
                data = file.read()
            whole = data.rfind(b"\n") + 1
            offset += whole
            for line in data[:whole].splitlines():
                yield decode_result_line(line)


def in_words(alert: Result, stream: DemoStream) -> str:
    assert alert.vertex is not None
    circles: Sequence[Circle] = stream.circles
    if stream.committee is not None:
        circles = [*circles, stream.committee]
    planted = {circle.name: set(stream.names[circle.members].tolist()) for circle in circles}
    return (
        f"{alert.alert} became true of {alert.rows:,} at once, in the last {stream.watch.called} "
        f"as of version {alert.version}: {named(alert.vertex.tolist(), planted)}"
    )


# Whether it is right ----------------------------------------------------------------------------


def verify(
    files: Files, whole: lpma.Graph, stream: DemoStream, device: str
) -> dict[str, Any]:  # fmt: skip
    """Compare what the window's process left with what it must be; entries of the summary. whole:
    the graph without a window. Raises DemoError where they differ."""
    # In a copy: results in another place are another run, of which a resume takes a checkpoint.
    copied = files.results_again.with_name("window-again")
    shutil.copytree(files.window, copied)
    with SqliteLog(files.log) as log:
        settings = _settings(stream.watch, files.results_again)
        again = Pipeline.resume(copied, log, device=device, **settings)
        again.close(checkpoint=False)
    shutil.rmtree(copied)
    told, made_again = map(_without_run, (files.results, files.results_again))
    if told != made_again:
        raise DemoError("the results differ from those of a run that nobody killed")
    window = again.graph
    assert isinstance(window, lpma.Graph)
    _check_window(window, whole, again.stats.expired_before)
    results = list(read_results(files.results))
    if len(results) != len(list(once(results))):
        raise DemoError("a result is in the file twice")
    _check_cores(window, results)
    alerts = [result for result in results if result.alert is not None]
    found = []
    if alerts:
        before = _check_alert(files, alerts[0], device)
        found.append(
            f"{in_words(alerts[0], stream)} At the version before, the largest core was {before}."
        )
    return {
        "window": stream.watch.called,
        "window_edges": window.num_edges,
        "window_let_go": whole.num_edges - window.num_edges,
        "alert": stream.watch.rule,
        "alerts": len(alerts),
        "alerted": sum(alert.rows for alert in alerts),
        "results": len(results),
        "repeats": json.loads(files.watched.read_text())["repeats"],
        "found": found,
    }


def _edges(graph: lpma.Graph) -> set[tuple[Name, Name, int]]:
    """Ends by name, and times."""
    s = graph.snapshot()
    assert s.names is not None
    assert s._times is not None
    indptr, indices, times = (to_host(column) for column in (s._indptr, s._indices, s._times))
    rows = np.repeat(np.arange(s.num_rows), np.diff(indptr))
    ends = (s.names.of(ids).tolist() for ids in (rows, indices))
    return set(zip(*ends, times.tolist(), strict=True))


def _without_run(path: Path) -> list[bytes]:
    """The lines of a file of results, but for the run's name, which each run has for itself."""
    return [result_line(replace(result, run="")) for result in read_results(path)]


def _check_window(window: lpma.Graph, whole: lpma.Graph, before: int | None) -> None:
    if before is None or _edges(window) != {edge for edge in _edges(whole) if edge[2] >= before}:
        raise DemoError("the window does not hold the edges of its time")


def _cores(graph: lpma.Graph) -> dict[Name, int]:
    """Core numbers above 0 by name, computed at once."""
    s = graph.snapshot()
    numbers = to_host(algorithms.core_numbers(s))
    rows = np.flatnonzero(numbers)
    assert s.names is not None
    return dict(zip(s.names.of(rows).tolist(), numbers[rows].tolist(), strict=True))


def _check_cores(window: lpma.Graph, results: Sequence[Result]) -> None:
    cores: dict[Name, int] = {}
    for result in results:
        if result.figure == "core" and result.alert is None:
            assert result.vertex is not None
            cores.update(zip(result.vertex.tolist(), result.new.tolist(), strict=True))
    if {vertex: core for vertex, core in cores.items() if core} != _cores(window):
        raise DemoError("the core numbers in the results are not those of the window")


def _check_alert(files: Files, alert: Result, device: str) -> int:
    """The largest core number at the version before the alert. Raises DemoError unless the rule
    was false there of all that the alert names, and their numbers are its old ones."""
    with SqliteLog(files.log) as log:
        past = as_of(files.window, log, version=alert.version - 1, device=device)
    cores = _cores(past)
    rule = rule_of(str(alert.alert), ["core"], "")
    assert alert.vertex is not None
    old = [cores.get(vertex, 0) for vertex in alert.vertex.tolist()]
    if old != alert.old.tolist() or any(rule.holds_of(core) for core in old):
        raise DemoError("a past view of the version before the first alert says otherwise")
    return max(cores.values(), default=0)
