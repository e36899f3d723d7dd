"""What is refused leaves batches, files and graphs as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lpma


def test_an_operation_that_a_batch_refuses_is_not_in_it(device: str) -> None:
    batch = lpma.Batch()
    batch.insert(1, 2, time=5)
    for refused in (lambda: batch.insert(3, 4, time=pd.NaT), lambda: batch.delete(1, [2])):  # type: ignore[arg-type]
        with pytest.raises(lpma.BatchError):
            refused()
    g = lpma.Graph(device=device)
    g.apply(batch)
    assert (len(batch), g.num_edges, g.time) == (1, 1, 5)


def test_an_image_that_lent_its_memory_writes_nothing(device: str, tmp_path: Path) -> None:
    g = lpma.from_edges([1, 2], [2, 3], device=device)
    image = g.image()
    image.save(tmp_path / "g.lpma")
    later = g.image(old=image)
    with pytest.raises(lpma.BatchError, match="lent its memory"):
        image.save(tmp_path / "g.lpma")
    with pytest.raises(lpma.BatchError, match="lent its memory"):
        assert image.slots
    assert lpma.Graph.load(tmp_path / "g.lpma", device=device).num_edges == 2
    later.save(tmp_path / "g.lpma")


def test_a_damaged_graph_is_no_table(device: str, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    lpma.from_edges([1], [2], device=device).save(path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(lpma.FormatError, match="restore the file"):
        lpma.Graph.load(path, device=device)


def test_rows_behind_an_unknown_name_are_refused(device: str) -> None:
    g = lpma.from_edges(["ann", "ann"], ["bob", "cem"], device=device)
    assert g.successors_after("ann", "bob").ids.tolist() == ["cem"]
    with pytest.raises(lpma.BatchError, match="after: no vertex goes by 'bbo'"):
        g.successors_after("ann", "bbo")


def test_the_degree_of_one_vertex_however_it_is_given(device: str) -> None:
    g = lpma.from_edges([1, 1], [2, 3], device=device)
    for vertex in (1, 1.0, np.uint64(1), np.float64(1), np.array(1)):
        assert g.degree(vertex) == 2
        assert isinstance(g.degree(vertex), int)


def test_a_copy_has_the_clock_of_its_graph() -> None:
    ticks = iter(range(1 << 20))
    g = lpma.Graph(device="cpu", clock=lambda: float(next(ticks)))
    before = next(ticks)
    g.copy().insert([1, 2], [2, 3])
    assert next(ticks) > before + 1
