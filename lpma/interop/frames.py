"""Graphs from data frames: pandas, polars, pyarrow, DuckDB, and whatever else speaks Arrow.

Idea: a frame that has `__arrow_c_stream__` (the Arrow PyCapsule interface) hands over record
batches, whose columns are read where they lie. Small batches are gathered, so that the store merges
few large ones. A pandas frame is read column by column instead, because pandas would convert all of
its columns, and copy them.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arguments.scalars import key, shown
from ..dependencies import optional_import
from ..errors import BatchError
from ..graph import Graph
from .columns import FrameColumn, holds_text
from .edges import make_graph, tell_lost_weights

GROUP_ROWS = 1 << 22  # rows inserted at once, where a frame comes in smaller batches
MOST_ROWS = 1 << 26  # where it comes in larger ones


def from_dataframe(
    df: Any,
    source: str = "src",
    target: str = "dst",
    weight: str | None = None,
    time: str | None = None,
    *,
    weight_dtype: str | None = "auto",
    **options: Any,
) -> Graph:
    """A graph with an edge for each row of a data frame.

    df            anything with `__arrow_c_stream__`: frames of pandas and polars, tables, record
                  batches and readers of pyarrow, relations of DuckDB, which are read batch by batch
    source        the name of the column with the sources: integers, or text, which makes a graph
                  with names (see `lpma.Graph`). A column of booleans beside it, called as this one
                  and "_number", says which are integers: `Snapshot.to_pandas` and others write it
    target        likewise, the targets
    weight, time  the names of columns as for `Graph.insert`; None: 1.0, and now. Times are
                  timestamps, dates, or integers in milliseconds since 1970
    weight_dtype  the type of the graph's weights: "float32", "float64" or None; "auto": float64 if
                  the column is of a type that float32 would round
    options       of `lpma.Graph`: directed, names, device …

    Other columns are not read. Repeated edges add up, and a weight of 0 or less makes no edge: see
    `Graph.insert`. A warning counts the rows that did nothing for it. A frame of many batches is
    inserted in groups of four million rows or more, each a version. Raises BatchError: if a column
    is not there (the message lists those that are), has missing values (it says in which row), or a
    type that does not fit.

    >>> import pyarrow
    >>> table = pyarrow.table({"from": [0, 0, 1], "to": [1, 2, 2], "amount": [0.5, 1.0, 2.0]})
    >>> g = lpma.from_dataframe(table, "from", "to", weight="amount", device="cpu")
    >>> g.num_edges, g.edge(1, 2).weight
    (3, 2.0)
    """
    names = {"source": source, "target": target, "weight": weight, "time": time}
    wanted = {role: key(name, role) for role, name in names.items() if name is not None}
    for role in ("source", "target"):
        if role not in wanted:
            raise BatchError(f"{role}: the name of a column, not None")
    graph = None
    for columns in _groups(df, wanted):
        weights: Any = columns["weight"].weights() if "weight" in columns else 1.0
        if graph is None:
            named = any(holds_text(columns[end].values) for end in ("source", "target"))
            held = getattr(weights, "dtype", np.dtype(np.float32))
            graph = make_graph(named, held, weight_dtype, options)
        by_name = graph.names is not None
        src, dst = (
            columns[end].named(columns.get(f"{end}_number")) if by_name else columns[end].ids()
            for end in ("source", "target")
        )
        graph.insert(src, dst, weights, columns["time"].times() if "time" in columns else None)
    assert graph is not None  # a frame without rows comes as one empty group
    tell_lost_weights(graph, "from_dataframe")
    return graph


def _groups(df: Any, wanted: dict[str, str]) -> Iterator[dict[str, FrameColumn]]:
    """The wanted columns by their role, group by group; at least one group."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(df, pandas.DataFrame):
        yield from _pandas_groups(df, wanted)
    elif hasattr(df, "__arrow_c_stream__"):
        yield from _arrow_groups(df, wanted)
    else:
        lazy = ": collect() it first" if hasattr(df, "collect") else ""
        raise BatchError(
            f"df: a {type(df).__name__} is no data frame, since it has no "
            f"__arrow_c_stream__{lazy}; columns by themselves go to lpma.from_edges(src, dst)"
        )


def _refuse_missing_columns(wanted: dict[str, str], there: list[Any], hint: str = "") -> None:
    for role, name in wanted.items():
        count = there.count(name)
        if not count:
            listed = ", ".join(map(repr, there)) or "none"
            raise BatchError(f"{role}={shown(name)}: no such column; there are {listed}{hint}")
        if count > 1:
            raise BatchError(f"{role}={shown(name)}: there are {count} columns of this name")


def _number_columns(wanted: dict[str, str], there: list[Any]) -> dict[str, str]:
    """The columns beside those of the vertices, by role, that may say which names are integers."""
    beside = {f"{end}_number": f"{wanted[end]}_number" for end in ("source", "target")}
    return {role: name for role, name in beside.items() if there.count(name) == 1}


def _arrow_groups(df: Any, wanted: dict[str, str]) -> Iterator[dict[str, FrameColumn]]:
    pyarrow = optional_import("pyarrow", "pyarrow", "from_dataframe()")
    try:
        reader = pyarrow.RecordBatchReader.from_stream(df)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise BatchError(
            f"from_dataframe: a column is of a type that pyarrow does not have ({error}): cast "
            "integers of 128 bits to 64, in polars by df.cast({pl.Int128: pl.Int64}), or to text"
        ) from error
    _refuse_missing_columns(wanted, reader.schema.names)
    numbers = {
        role: name for role, name in _number_columns(wanted, reader.schema.names).items()
        if pyarrow.types.is_boolean(reader.schema.field(name).type)
    }  # fmt: skip
    library = type(df).__module__.partition(".")[0]
    advice = "drop such rows first, with drop_nulls() or WHERE … IS NOT NULL"
    if library == "polars":
        advice = f"drop such rows first, with df.drop_nulls({list(wanted.values())})"
    wanted = wanted | numbers
    places = {role: reader.schema.names.index(name) for role, name in wanted.items()}
    first = 0
    for batches in _gathered(reader):
        group = {}
        for role, place in places.items():
            kind = reader.schema.types[place]
            pieces = pyarrow.chunked_array([batch.column(place) for batch in batches], kind)
            group[role] = FrameColumn(pieces, wanted[role], first, advice)
        yield group
        first += sum(batch.num_rows for batch in batches)


def _gathered(reader: Any) -> Iterator[list[Any]]:
    """A reader's batches, at most MOST_ROWS long, in lists of GROUP_ROWS rows or more; at least
    one."""
    held: list[Any] = []
    rows, is_first = 0, True
    for batch in reader:
        for start in range(0, batch.num_rows, MOST_ROWS):
            held.append(batch.slice(start, MOST_ROWS))
            rows += held[-1].num_rows
            if rows >= GROUP_ROWS:
                yield held
                held, rows, is_first = [], 0, False
    if held or is_first:
        yield held


def _pandas_groups(df: Any, wanted: dict[str, str]) -> Iterator[dict[str, FrameColumn]]:
    levels = [name for name in df.index.names if name is not None]
    hint = f" (the index has {', '.join(map(repr, levels))}: df.reset_index())" if levels else ""
    _refuse_missing_columns(wanted, df.columns.tolist(), hint)
    advice = f"drop such rows first, with df.dropna(subset={list(wanted.values())})"
    beside = _number_columns(wanted, df.columns.tolist())
    numbers = {role: name for role, name in beside.items() if df[name].dtype == np.bool_}
    wanted = wanted | numbers
    columns = {role: _of_pandas(df[name]) for role, name in wanted.items()}
    for first in range(0, max(len(df), 1), MOST_ROWS):
        yield {
            role: FrameColumn(column[first : first + MOST_ROWS], wanted[role], first, advice)
            for role, column in columns.items()
        }


def _of_pandas(column: Any) -> Any:
    """A column as NumPy's array if pandas has it so, else as Arrow's; objects that Arrow finds no
    type for, such as text among integers, as NumPy's objects."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufM":
        return column.to_numpy()
    pyarrow = optional_import("pyarrow", "pyarrow", "from_dataframe()")
    try:
        return pyarrow.array(column, from_pandas=True)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError):
        return column.to_numpy(object)
