"""The tutorial runs on its ratings, and what it tells of August 2013 is so: NetworkX computes the
core numbers of the last 90 days anew, at every alert and at some other versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import ingest
from tests.conftest import real_graph
from tests.support.pages import ROOT, Reader, blocks

DATA = "soc-sign-bitcoinotc"
WINDOW_S = 90 * 86_400
NIGHT, END = 25_689, 27_347  # ratings until the evening, and until the end of August
OTHERS = (1, 40, 150, 257, 258, 300, 400, 423)  # versions

pytestmark = pytest.mark.integration


def ratings_by(version: int) -> int:
    """How many ratings this version holds or has let go: the tutorial's batches of 100, then 10."""
    evening = -(-NIGHT // 100)
    return min(100 * version, NIGHT) if version <= evening else NIGHT + 10 * (version - evening)


def cores_at(version: int, ratings: dict[str, Any]) -> dict[int, int]:
    end = min(ratings_by(version), END)
    since = int(np.searchsorted(ratings["t"], ratings["t"][end - 1] - WINDOW_S))
    ends = (ratings[name][since:end].tolist() for name in ("src", "dst"))
    found: dict[int, int] = networkx.core_number(networkx.Graph(list(zip(*ends, strict=True))))
    return found


def test_the_tutorials_cores_and_alerts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = real_graph(DATA)
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "tutorial.md"
    with Reader(page, tmp_path) as reader:
        for block in blocks(page.read_text("utf-8")):
            if block.not_run is None and block.needs <= {DATA}:
                reader.run(block)
    results = list(ingest.read_results("cores.jsonl"))
    assert ratings_by(max(OTHERS)) >= END > ratings_by(max(OTHERS) - 1)
    alerts = {result.version: result for result in results if result.alert is not None}
    for version, alert in alerts.items():
        was, now = (cores_at(v, ratings) for v in (version - 1, version))
        come = {v for v, core in now.items() if core >= 8 > was.get(v, 0)}
        assert alert.vertex is not None
        assert set(alert.vertex.tolist()) == come
    checked = 0
    cores: dict[int, int] = {}
    asked = sorted({*OTHERS, *alerts})
    for result in [*results, None]:
        while asked and (result is None or result.version > asked[0]):
            assert {v: k for v, k in cores.items() if k} == cores_at(asked.pop(0), ratings)
            checked += 1
        if result is not None and result.figure == "core" and result.alert is None:
            assert result.vertex is not None
            cores |= dict(zip(result.vertex.tolist(), result.new.tolist(), strict=True))
    assert checked == len({*OTHERS, *alerts}) > 30
