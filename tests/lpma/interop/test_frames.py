"""Graphs from data frames: every library and type against an insertion of the same columns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import duckdb
import igraph
import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import lpma
from lpma.interop import frames
from tests.support.oracles import host

Array = npt.NDArray[Any]
N = 500
RNG = np.random.default_rng(3)
COLUMNS: dict[str, Array] = {
    "from": RNG.integers(0, 100, N),
    "to": RNG.integers(0, 100, N).astype(np.uint32),
    "amount": RNG.random(N) + 0.01,
    "when": RNG.integers(0, 10**12, N).astype("M8[ms]"),
    "comment": np.array(["x"] * N, object),
}
ROLES: dict[str, Any] = {"source": "from", "target": "to", "weight": "amount", "time": "when"}


def duck(table: Any) -> Any:
    connection = duckdb.connect()
    connection.register("held", table)
    return connection.sql("SELECT * FROM held")


def reader(table: Any) -> Any:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))


def zoned(frame: Any) -> Any:
    frame = frame.copy()
    frame["when"] = frame["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    return frame


PANDAS, TABLE = pd.DataFrame(COLUMNS), pa.table(COLUMNS)
POLARS = pl.DataFrame(COLUMNS)
SHUFFLED = np.argsort(np.argsort(COLUMNS["amount"]))  # a permutation, to be undone by a view

FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: PANDAS,
    "pandas, another index": lambda: PANDAS.set_axis(range(N, 0, -1)),
    "pandas, nullable": PANDAS.convert_dtypes,
    "pandas, Arrow": lambda: PANDAS.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, categorical": lambda: PANDAS.astype({"from": "category"}),
    "pandas, floats": lambda: PANDAS.astype({"from": "float32", "to": "Float64"}),
    "pandas, objects": lambda: PANDAS.astype({"from": object, "amount": object}),
    "pandas, zoned times": lambda: zoned(PANDAS),
    "pandas, a view": lambda: pd.concat([PANDAS, PANDAS])[::-1].iloc[N - 1 :: -1].iloc[:N],
    "polars": lambda: POLARS,
    "polars, chunks": lambda: pl.concat([POLARS[:7], POLARS[7:]], rechunk=False),
    "polars, a slice": lambda: pl.concat([POLARS[:9], POLARS]).slice(9),
    "polars, floats": lambda: POLARS.with_columns(pl.col("from").cast(pl.Float64)),
    "pyarrow": lambda: TABLE,
    "pyarrow, a slice": lambda: pa.concat_tables([TABLE[:9], TABLE]).slice(9),
    "pyarrow, a batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "pyarrow, dictionary": lambda: TABLE.set_column(0, "from", TABLE["from"].dictionary_encode()),
    "pyarrow, a reader": lambda: reader(TABLE),
    "pyarrow, decimals": lambda: TABLE.set_column(
        2, "amount", pa.array(COLUMNS["amount"]).cast(pa.decimal256(40, 30), safe=False)
    ),
    "DuckDB": lambda: duck(TABLE),
}


def contents(g: lpma.Graph) -> dict[str, list[Any]]:
    return {name: host(array).tolist() for name, array in g.snapshot().to_numpy().items()}


def inserted(device: str) -> lpma.Graph:
    g = lpma.Graph(device=device, weight_dtype="float64")
    g.insert(*(COLUMNS[name] for name in ("from", "to", "amount", "when")))
    return g


@pytest.mark.parametrize("group", [1, 100, frames.GROUP_ROWS])
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_library(
    device: str, make: Callable[[], Any], group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "GROUP_ROWS", group)
    monkeypatch.setattr(frames, "MOST_ROWS", max(group, 40))
    g = lpma.from_dataframe(make(), **ROLES, device=device)
    found, expected = contents(g), contents(inserted(device))
    weights = found.pop("weights"), expected.pop("weights")
    assert found == expected
    assert weights[0] == pytest.approx(weights[1], rel=1e-12)  # sums of groups, in another order
    g.check()


@pytest.mark.parametrize("make", [lambda: PANDAS, lambda: POLARS, lambda: TABLE])
def test_only_what_is_asked_for(device: str, make: Callable[[], Any]) -> None:
    g = lpma.from_dataframe(make(), "from", "to", device=device, directed=False, times=False)
    expected = lpma.Graph(directed=False, device=device, times=False)
    expected.insert(COLUMNS["from"], COLUMNS["to"])
    assert contents(g) == contents(expected)
    assert (g.weight_dtype, g.directed, g.version) == (np.dtype("f4"), False, 1)
    g = lpma.from_dataframe(make(), "from", "to", device=device, weight_dtype=None)
    assert g.weight_dtype is None
    with pytest.raises(TypeError, match="direct"):
        lpma.from_dataframe(make(), "from", "to", direct=True)


INTEGERS = st.sampled_from([">i2", "i1", "u1", "<i4", ">u4", "i8", "u8", "f2", ">f4", "f8"])


@given(st.data(), INTEGERS, INTEGERS, st.integers(0, 60), st.integers(1, 3))
def test_every_type_of_numbers(data: Any, one: str, other: str, n: int, step: int) -> None:
    """Any integers, and floats that are whole; big-endian, and not contiguous."""
    small = st.integers(0, 100)
    src = data.draw(hnp.arrays(one, n * step, elements=small))[::step]
    dst = data.draw(hnp.arrays(other, n * step, elements=small))[::step]
    expected = lpma.Graph(device="cpu", times=False)
    expected.insert([int(u) for u in src], [int(v) for v in dst])
    made = [lpma.from_edges(src, dst, device="cpu", times=False)]
    frame = pd.DataFrame({"src": pd.Series(src), "dst": pd.Series(dst)})
    made.append(lpma.from_dataframe(frame, device="cpu", times=False))
    native = {"src": src.astype(src.dtype.newbyteorder("=")), "dst": np.array(dst, float)}
    made.append(lpma.from_dataframe(pa.table(native), device="cpu", times=False))
    if "f2" not in (one, other):  # which DuckDB does not read, nor every release of polars
        for make in (pl.DataFrame, lambda columns: duck(pa.table(columns))):
            made.append(lpma.from_dataframe(make(native), device="cpu", times=False))
    for g in made:
        assert contents(g) == contents(expected)


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pa.table, pl.DataFrame, lambda c: duck(pa.table(c))]
)
def test_empty_frames(make: Any) -> None:
    for dtype in (np.int64, np.float64):
        g = lpma.from_dataframe(
            make({name: np.empty(0, dtype) for name in ("src", "dst", "w")}), weight="w",
            device="cpu",
        )  # fmt: skip
        assert (g.num_edges, g.version, g.weight_dtype) == (0, 1, np.dtype("f8"))


def test_columns_that_are_not_there() -> None:
    for frame in (PANDAS, POLARS, TABLE, duck(TABLE)):
        with pytest.raises(
            lpma.BatchError, match="source='src': no such column; there are 'from',"
        ):
            lpma.from_dataframe(frame)
        with pytest.raises(lpma.BatchError, match="time='t': no such column; there are 'from',"):
            lpma.from_dataframe(frame, "from", "to", time="t")
    with pytest.raises(lpma.BatchError, match=r"the index has 'from': df.reset_index\(\)"):
        lpma.from_dataframe(PANDAS.set_index("from"), "from", "to")
    twice = pd.concat([PANDAS, PANDAS], axis=1)
    with pytest.raises(lpma.BatchError, match="source='from': there are 2 columns of this name"):
        lpma.from_dataframe(twice, "from", "to")


def test_missing_values_are_told_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "GROUP_ROWS", 10)
    for name in ("from", "to", "amount", "when"):
        holes = PANDAS.convert_dtypes()
        holes.loc[[33, 35], name] = pd.NA
        table = pa.Table.from_pandas(holes)
        forms: list[tuple[Any, str]] = [
            (holes, r"nor in 1 more: .* df.dropna\(subset=\['from', 'to', 'amount', 'when'\]\)"),
            (pl.from_arrow(table), r"nor in 1 more: .* df.drop_nulls\(\['from', "),
            (reader(table), r"drop_nulls\(\) or WHERE … IS NOT NULL"),
            (duck(table), "nor in 1 more"),
        ]
        if name != "when":
            plain = PANDAS.astype({name: float})
            plain.loc[[33, 35], name] = np.nan
            forms += [
                (plain, "nor in 1 more"),
                (pa.table({c: plain[c].array for c in COLUMNS}), ""),
            ]
        for frame, advice in forms:
            with pytest.raises(lpma.BatchError, match=f"{name!r} has no value in row 33.*{advice}"):
                lpma.from_dataframe(frame, **ROLES, device="cpu")
    plain = PANDAS.copy()
    plain.loc[33, "when"] = pd.NaT
    with pytest.raises(lpma.BatchError, match="'when' has no value in row 33: "):
        lpma.from_dataframe(plain, **ROLES, device="cpu")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"src": [True, False]}, "column 'src' is of bool, and vertices go by integers or text"),
    ({"dst": [0.5, 1.0]}, "column 'dst': .* row 0 has 0.5"),
    ({"dst": [-1, 1]}, "column 'dst' has values from -1 to 1, .* names=True"),
    ({"src": [1, 2**32]}, "column 'src' has values from 1 to 4294967296"),
    ({"src": [datetime(2020, 1, 1)] * 2}, "column 'src' is of .*, and vertices go by"),
    ({"w": ["1", "2"]}, "column 'w' is of .*, and weights are numbers"),
    ({"w": [True, False]}, "column 'w' is of bool"),
    ({"t": [1.5, 2.5]}, "column 't' is of .*, and times are timestamps, or integers"),
    ({"t": ["2020-01-01"] * 2}, "column 't' is of .*, and times are"),
    ({"w": [1.0, np.inf]}, "weight: finite values"),
]


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, pl.DataFrame])
@pytest.mark.parametrize("given, message", WRONG, ids=lambda x: x if isinstance(x, str) else "")
def test_columns_of_the_wrong_type(make: Any, given: dict[str, Any], message: str) -> None:
    columns = {"src": [1, 2], "dst": [2, 3], "w": [1.0, 2.0], "t": [1, 2], **given}
    with pytest.raises(lpma.BatchError, match=message):
        lpma.from_dataframe(make(columns), weight="w", time="t", device="cpu")


def test_what_is_no_frame() -> None:
    for wrong, message in [
        (POLARS.lazy(), r"a LazyFrame is no data frame.*collect\(\) it first"),
        ({"src": [1], "dst": [2]}, r"a dict is no data frame.*from_edges"),
        (np.zeros((2, 2)), "a ndarray is no data frame"),
    ]:
        with pytest.raises(lpma.BatchError, match=message):
            lpma.from_dataframe(wrong)


@pytest.mark.parametrize(
    "contents, advice",
    [
        (igraph.Graph(3), r"a Graph: .* lpma.from_igraph\(G\)"),
        (PANDAS, r"a DataFrame: .* lpma.from_dataframe\(df, source=…, target=…\)"),
        (POLARS, r"a DataFrame: .* lpma.from_dataframe"),
        (TABLE, r"a Table: .* lpma.from_dataframe"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_graph_made_of_what_it_is_not_says_what_to_call(contents: Any, advice: str) -> None:
    with pytest.raises(lpma.BatchError, match=f"directed: True or False, not {advice}"):
        lpma.Graph(contents)


def test_weights_keep_their_values() -> None:
    """float64 where float32 would round, unless it is asked for."""
    for dtype, kept in [
        ("f8", "f8"), ("i8", "f8"), ("u4", "f8"), ("f4", "f4"), ("i2", "f4"), ("u1", "f4"),
        ("f2", "f4"),
    ]:  # fmt: skip
        weights = np.array([1, 3], dtype)
        frame = pd.DataFrame({"src": [1, 2], "dst": [2, 3], "w": weights})
        for g in (
            lpma.from_edges([1, 2], [2, 3], weights, device="cpu"),
            lpma.from_dataframe(frame, weight="w", device="cpu"),
            lpma.from_dataframe(pl.from_pandas(frame), weight="w", device="cpu"),
        ):
            assert g.weight_dtype == kept
    assert lpma.from_edges(1, 2, 0.1, device="cpu").weight_dtype == "f8"
    assert lpma.from_edges(1, 2, 0.5, device="cpu").weight_dtype == "f4"
    g = lpma.from_edges(1, 2, 0.1, weight_dtype="float32", device="cpu")
    assert g.weight_dtype == "f4"
    with pytest.raises(lpma.BatchError, match="weight_dtype: choose one of"):
        lpma.from_edges(1, 2, weight_dtype="float16", device="cpu")


def test_from_edges(device: str) -> None:
    moment = datetime(1970, 1, 2, tzinfo=UTC)
    columns = [0, 1, 1], [1, 2, 2], [0.5, 1.0, 2.0]
    g = lpma.from_edges(*columns, time=moment, device=device, directed=False)
    assert (g.num_edges, g.edge(2, 1), g.version) == (2, (3.0, 86_400_000), 1)
    with pytest.raises(lpma.BatchError, match=r"dst has 1 rows, src has 2: .* plain number"):
        lpma.from_edges([0, 1], [1], device=device)


@pytest.mark.parametrize("change", ["", ".dictionary_encode()", ".cast('float64')"])
@pytest.mark.parametrize("names", [False, True])
def test_a_frame_of_arrow_needs_no_pandas(change: str, names: bool) -> None:
    code = (
        "import sys, pyarrow as pa, lpma; memory = pa.py_buffer(bytes(range(16)));"
        "c = pa.Array.from_buffers(pa.int8(), 16, [None, memory]);"
        f"t = pa.Table.from_arrays([c[:2]{change}, c[1:3]{change}], ['src', 'dst']);"
        f"g = lpma.from_dataframe(t, names={names}, device='cpu'); assert g.num_edges == 2;"
        "print(*{'pandas', 'polars', 'networkx', 'duckdb'} & set(sys.modules))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert told.stdout.split() == []


def test_rows_that_make_no_edge_are_told_with_their_number() -> None:
    """Such rows may lower an edge, as -1 does here, so that they are no error."""
    columns = {"src": [0, 0, 1, 2], "dst": [1, 1, 2, 3], "weight": [5.0, -1.0, 0.0, -2.0]}
    for make in (
        lambda: lpma.from_dataframe(pd.DataFrame(columns), weight="weight", device="cpu"),
        lambda: lpma.from_dataframe(pa.table(columns), weight="weight", device="cpu"),
        lambda: lpma.from_edges(*columns.values(), device="cpu"),
    ):
        with pytest.warns(UserWarning, match="2 rows of weights of 0 or less made no edge") as told:
            g = make()
        assert told[0].filename == __file__
        assert g.num_edges == 1
        assert host(g.edges(0, 1).weights).tolist() == [4.0]
    with pytest.raises(lpma.BatchError, match=r"from 1 to 2 has the weight 0\.0"):
        lpma.from_edge_index([[0, 1], [1, 2]], [1.0, 0.0], device="cpu")
    with pytest.raises(lpma.BatchError, match="from 0 to 1 has the weight -1"):
        lpma.from_edge_index([[0, 1], [1, 2]], -1, device="cpu", directed=True)


def test_types_that_others_have_defined_are_refused() -> None:
    months = pd.period_range("2024-01", periods=2, freq="M")
    frame = pd.DataFrame({"src": [1, 2], "dst": [2, 3], "time": months})
    for df in (frame, pa.Table.from_pandas(frame)):
        with pytest.raises(lpma.BatchError, match=r"'time' is of the type pandas\.period"):
            lpma.from_dataframe(df, time="time", device="cpu")
        assert lpma.from_dataframe(df, device="cpu").num_edges == 2
