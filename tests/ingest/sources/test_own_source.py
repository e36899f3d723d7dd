"""A source of a user's own: the five methods are enough for all that a pipeline does with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import ingest
import lpma
from ingest import Partition, Pipeline, PipelineError
from ingest.pipeline.dry_run import DryRun
from ingest.pipeline.recovery import begin
from ingest.settings import Settings
from ingest.sources import Identity, Polled

PLACE = Partition("edges", 0)


class Edges(ingest.Source):
    """v → v + 1, for so many v."""

    def __init__(self, count: int) -> None:
        self.count, self.next = count, 0

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        start, self.next = self.next, min(self.next + max_records, self.count)
        return [Polled(PLACE, v, ingest.encode_row(v, v + 1)) for v in range(start, self.next)]

    def seek(self, positions: Mapping[Partition, int]) -> None:
        self.next = positions.get(PLACE, self.next)

    def positions(self) -> dict[Partition, int]:
        return {PLACE: self.next}

    def at_end(self) -> bool:
        return self.next == self.count

    def identity(self) -> Identity:
        return Identity("own", {"edges": "1"})


def test_it_is_read_resumed_and_looked_back_at(tmp_path: Path) -> None:
    with Pipeline(Edges(7), lpma.Graph(device="cpu"), tmp_path / "c", batch_size=3) as pipeline:
        assert pipeline.run("end") == 7
        assert pipeline.stats.lag() == {}
    with Pipeline.resume(tmp_path / "c", Edges(10)) as pipeline:
        assert pipeline.run("end") == 3
    past = ingest.as_of(tmp_path / "c", Edges(10), version=4, device="cpu")
    assert past.num_edges == 10


def test_it_can_be_tried_first() -> None:
    source, graph, settings = Edges(5), lpma.Graph(device="cpu"), Settings()
    dry = DryRun(
        source, graph, settings, begin(source, graph, None, settings, None).state, answers=False
    )
    dry.run()
    assert (dry.operations, dry.lag()) == (5, {})


def test_what_is_no_source_is_refused() -> None:
    class Alike:
        poll, seek, positions = Edges.poll, Edges.seek, Edges.positions
        at_end, identity = Edges.at_end, Edges.identity

    with pytest.raises(PipelineError, match=r"of type Alike: .* derive your own from ingest\.Sou"):
        Pipeline(Alike(), lpma.Graph(device="cpu"))  # type: ignore[arg-type]
