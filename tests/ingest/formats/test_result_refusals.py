"""Results that are none: RecordError, and nothing else, both ways."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import RecordError, Result, decode_result
from ingest.formats.results import MAX_RESULT_ROWS, decode_result_line, encode_result, result_line

TOTAL = Result("5f0c", 7, 0, 1, 9, "triangles", None, 3, 4)
CORE = Result(
    "5f0c", 7, 0, 1, 9, "core", np.array([2, 5], np.uint32), np.array([0, 1], np.int32),
    np.array([1, 2], np.int32),
)  # fmt: skip
ANY: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(), st.text(max_size=9),
    st.binary(max_size=9), st.lists(st.integers(-(2**65), 2**65), max_size=3),
    st.lists(st.one_of(st.text(max_size=3), st.lists(st.none(), max_size=2)), max_size=3),
    st.just(TOTAL), st.sampled_from([np.int64(3), np.uint8(1), np.zeros((2, 2), int), np.empty(2)]),
    st.sampled_from(["\ud800", {}, {1: 2}, object(), np.bool_(True), 1j]),
)  # fmt: skip
FIELDS = ("run", "version", "part", "parts", "time", "figure", "vertex", "old", "new", "alert")


@given(st.sampled_from([TOTAL, CORE]), st.dictionaries(st.sampled_from(FIELDS), ANY, max_size=2))
def test_what_is_encoded_can_be_decoded_or_is_refused(result: Result, changed: Any) -> None:
    try:
        data = encode_result(replace(result, **changed))
    except RecordError:
        return
    again = decode_result(data)
    assert encode_result(again) == data


@given(ANY)
def test_what_is_no_bytes_is_no_result(given_: Any) -> None:
    for reading in (decode_result, decode_result_line):
        with pytest.raises(RecordError):
            reading(given_)
    with pytest.raises(RecordError):
        encode_result({} if isinstance(given_, Result) else given_)


def test_numpy_integers_and_lists_are_taken() -> None:
    integers: Any = {"version": np.int64(7), "old": np.uint32(3), "new": np.int64(4)}
    total = replace(TOTAL, **integers)
    assert encode_result(total) == encode_result(TOTAL)
    assert result_line(total) == result_line(TOTAL)
    lists: Any = {"vertex": [2, 5], "old": [0, 1], "new": np.array([1, 2])}
    assert encode_result(replace(CORE, **lists)) == encode_result(CORE)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (replace(TOTAL, new=2**64), "new: .* lies outside"),
        (replace(TOTAL, new=-1), "new: .* lies outside"),
        (replace(TOTAL, part=1), "part"),
        (replace(CORE, old=np.array([0, 2**31])), "32 bits"),
        (replace(CORE, old=np.array([0], np.int32)), "expected 2 integers"),
        (replace(CORE, vertex=np.zeros(0, np.uint32)), "0 rows"),
        (replace(CORE, vertex=np.zeros(MAX_RESULT_ROWS + 1, np.uint32)), "65537 rows"),
        (
            Result("r", 1, 0, 1, 1, "core", np.array(["x" * 1000] * 1100, object),
                   np.zeros(1100, np.int32), np.ones(1100, np.int32)),
            "cut it",
        ),
    ],
)  # fmt: skip
def test_refusals_say_what_is_wrong(result: Result, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        encode_result(result)
