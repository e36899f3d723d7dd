"""Times as callers have them: datetimes of every library against Python's own arithmetic."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.arguments.times import milliseconds, numbered
from tests.support.oracles import host

MOMENT = datetime(2024, 3, 31, 1, 30, 0, 123456, tzinfo=UTC)
BERLIN = MOMENT.astimezone(ZoneInfo("Europe/Berlin"))
NAIVE = MOMENT.replace(tzinfo=None)
MS = calendar.timegm(MOMENT.timetuple()) * 1000 + 123
ZONED, PLAIN = pd.Series([BERLIN, BERLIN]), pd.Series([NAIVE, NAIVE])

FORMS: dict[str, Any] = {
    "integer": MS,
    "aware": MOMENT,
    "in another zone": BERLIN,
    "naive": NAIVE,
    "Timestamp": pd.Timestamp(BERLIN),
    "datetime64": np.datetime64(NAIVE),
    "list": [BERLIN, NAIVE],
    "tuple": (np.datetime64(NAIVE, "ns"), MOMENT),
    "array of objects": np.array([BERLIN, NAIVE], object),
    "array": np.array([NAIVE] * 2, "M8[ms]"),
    "big-endian": np.array([NAIVE] * 2, ">M8[us]"),
    "strided": np.array([NAIVE] * 4, "M8[ns]")[::2],
    "pandas": PLAIN,
    "pandas zoned": ZONED,
    "pandas index": pd.Index(ZONED),
    "pandas objects": ZONED.astype(object),
    "pandas arrow": PLAIN.astype(pd.ArrowDtype(pa.timestamp("ns"))),
    "pandas arrow zoned": ZONED.astype(pd.ArrowDtype(pa.timestamp("us", "Europe/Berlin"))),
    "polars": pl.Series([NAIVE, NAIVE]),
    "polars zoned": pl.Series([BERLIN, BERLIN]),
    "arrow": pa.array([BERLIN, BERLIN]),
    "arrow chunked": pa.chunked_array([[BERLIN], [MOMENT]]),
}


@pytest.mark.parametrize("time", FORMS.values(), ids=FORMS)
def test_a_time_is_the_same_whatever_holds_it(device: str, time: Any) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2], [2, 3], time=time)
    assert host(g.snapshot().times).tolist() == [MS, MS]
    assert g.time == MS
    b = lpma.Batch()
    one = time[0] if isinstance(time, list | tuple) else time
    if isinstance(one, int | date | np.datetime64):
        b.insert(7, 8, time=one)
        b.delete(2, 3, time=one)
        g.apply(b)
        assert g.edge(7, 8) == (1.0, MS)
    g.apply(lpma.Batch.from_columns(0, [5, 6], [6, 7], time=time))
    assert host(g.edges([5, 6], [6, 7]).times).tolist() == [MS, MS]


@given(st.datetimes(), st.sampled_from(["D", "h", "m", "s", "ms", "us"]))
def test_every_unit_rounds_down(moment: datetime, unit: str) -> None:
    held = np.array([moment], f"M8[{unit}]")
    exact: datetime = held.astype("M8[us]")[0].item()
    expected = (exact - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
    assert milliseconds(held, "time").tolist() == [expected]
    assert int(numbered(exact, "time")) == expected
    assert int(numbered(exact.date(), "time")) % 86_400_000 == 0


def test_a_missing_timestamp() -> None:
    g = lpma.Graph(device="cpu")
    for missing in (pd.NaT, [MOMENT, pd.NaT], pd.Series([NAIVE, None]), pl.Series([NAIVE, None])):
        with pytest.raises(lpma.BatchError, match="NaT"):
            g.insert([1, 2], [2, 3], time=missing)
    assert g.version == 0


def test_dates_and_distant_years() -> None:
    g = lpma.Graph(device="cpu")
    g.insert(1, 2, time=date(1970, 1, 2))
    assert g.time == 86_400_000
    g.insert(1, 2, time=np.datetime64(-(2**40), "s"))
    assert g.time == -(2**40) * 1000
    with pytest.raises(lpma.BatchError, match="outside 64 bits"):
        g.insert(1, 2, time=np.datetime64(2**60, "D"))
