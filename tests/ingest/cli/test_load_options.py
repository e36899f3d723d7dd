"""`lpma load` with any combination of its options that its help allows makes the graph that they
describe. Options are drawn together: each is tested by itself elsewhere."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import lpma
from tests.support.command_line import document
from tests.support.contents import edges_of

SEPARATORS = {"tab": "\t", "blank": " ", ",": ",", ";": ";", "|": "|"}
ROLES = ("source", "target", "weight", "time")
CALLED = {"source": "from", "target": "to", "weight": "amount", "time": "when", None: "remark"}
Row = tuple[Any, Any, int, int]  # source, target, weight, time
Edges = dict[tuple[Any, Any], tuple[float, int]]


class Asked(NamedTuple):
    """A file and the options that it is loaded with."""

    form: str
    rows: list[Row]
    columns: list[str | None]  # the role of each; None: of no use
    separator: str
    header: bool
    by_number: bool  # columns are called by their numbers
    by_list: bool  # or all in --columns
    names: bool
    batch_size: int
    weight_dtype: str
    times: bool
    directed: bool
    predecessors: bool
    strategy: str
    segment_size: int

    @property
    def roles(self) -> list[str]:
        return [role for role in self.columns if role is not None]


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    names = draw(st.booleans())
    ends = st.sampled_from(["ann", "bob", "ü"]) if names else st.integers(0, 5)
    row = st.tuples(ends, ends, st.integers(1, 8), st.integers(0, 1000))
    optional = draw(st.lists(st.sampled_from(["weight", "time", None]), unique=True))
    columns = draw(st.permutations(["source", "target", *optional]))
    directed = draw(st.booleans())
    return Asked(
        form=draw(st.sampled_from(["csv", "jsonl", "parquet"])),
        rows=draw(st.lists(row, min_size=1, max_size=12)),
        columns=columns,
        separator=draw(st.sampled_from(list(SEPARATORS))),
        header=draw(st.booleans()),
        by_number=draw(st.booleans()),
        by_list=draw(st.booleans()),
        names=names,
        batch_size=draw(st.sampled_from([1, 3, 100])),
        weight_dtype=draw(st.sampled_from(["float32", "float64", "none"])),
        times=draw(st.booleans()),
        directed=directed,
        predecessors=directed and draw(st.booleans()),
        strategy=draw(st.sampled_from(["hybrid", "bottom-up", "top-down"])),
        segment_size=draw(st.sampled_from([2, 32, 1024])),
    )


def written(asked: Asked, folder: Path) -> Path:
    path = folder / f"own.{asked.form}"
    titles = [CALLED[role] for role in asked.columns]
    by_role = [dict(zip(ROLES, row, strict=True)) for row in asked.rows]
    table = [["x" if role is None else row[role] for role in asked.columns] for row in by_role]
    if asked.form == "csv":
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, delimiter=SEPARATORS[asked.separator])
            writer.writerows([titles, *table] if asked.header else table)
    elif asked.form == "jsonl":
        lines = (json.dumps(dict(zip(titles, row, strict=True))) for row in table)
        path.write_text("\n".join(lines) + "\n")
    else:
        columns = zip(titles, zip(*table, strict=True), strict=True)
        parquet.write_table(pyarrow.table({title: list(column) for title, column in columns}), path)
    return path


def options(asked: Asked) -> list[Any]:
    given: list[Any] = ["--names" if asked.names else "--no-names"]
    text = asked.form == "csv"
    if text:
        given += ["--separator", asked.separator, "--header" if asked.header else "--no-header"]
    if text and asked.by_list:
        words = {"source": "src", "target": "dst", "weight": "weight", "time": "time", None: "-"}
        given += ["--columns", " ".join(words[role] for role in asked.columns)]
    else:
        numbers = asked.form != "jsonl" and (asked.by_number or (text and not asked.header))
        for at, role in enumerate(asked.columns):
            if role is not None:
                given += [f"--{role}", at + 1 if numbers else CALLED[role]]
        for role in {"weight", "time"} - set(asked.roles):
            given += [f"--{role}", "none"]
    given += ["--batch-size", asked.batch_size, "--weight-dtype", asked.weight_dtype]
    given += ["--times" if asked.times else "--no-times"]
    given += ["--directed" if asked.directed else "--undirected"]
    given += ["--predecessors"] if asked.predecessors else []
    given += ["--strategy", asked.strategy, "--segment-size", asked.segment_size]
    return given


def expected(asked: Asked) -> Edges:
    found: Edges = {}
    for u, v, weight, time in asked.rows:
        w = float(weight) if "weight" in asked.roles else 1.0
        t = time if "time" in asked.roles else 0
        for ends in {(u, v)} if asked.directed else {(u, v), (v, u)}:
            found[ends] = found.get(ends, (0.0, 0))[0] + w, t
    plain = asked.weight_dtype == "none"
    return {ends: (1.0 if plain else w, t) for ends, (w, t) in found.items()}


def without_times(edges: Edges) -> Edges:
    return {ends: (weight, 0) for ends, (weight, _) in edges.items()}


@given(asked=asked())
def test_any_options_make_the_graph_that_they_describe(
    tmp_path_factory: pytest.TempPathFactory, asked: Asked
) -> None:
    folder = tmp_path_factory.mktemp("load")
    path = written(asked, folder)
    document("load", path, folder / "g.lpma", "--device", "cpu", *options(asked))
    g = lpma.Graph.load(folder / "g.lpma", device="cpu")
    g.check()
    assert (g.directed, g.has_predecessors) == (
        asked.directed, asked.predecessors or not asked.directed,
    )  # fmt: skip
    assert (g.has_times, g.segment_size) == (asked.times, asked.segment_size)
    found, wanted = edges_of(g.snapshot()), expected(asked)
    if not (asked.times and "time" in asked.roles):  # a row has the time of its batch, or none
        found, wanted = without_times(found), without_times(wanted)
    assert found == wanted
