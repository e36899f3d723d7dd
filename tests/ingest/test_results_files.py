"""Files of results: what is cut off their end, and what is refused untouched."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import SourceError
from ingest.formats.results import (
    MAX_LINE_BYTES,
    MAX_RESULT_BYTES,
    MAX_RESULT_ROWS,
    ROW_BYTES,
    Result,
    begins_result_line,
    decode_result_line,
    result_line,
)
from ingest.results.sinks import FIRST_PIECE_BYTES, end_of, opened
from lpma.arguments.convert import MAX_NAME_BYTES

TOTAL = Result("5f0c", 7, 0, 1, -9, "triangles", old=3, new=4)


def of_vertices(vertex: Any, alert: str | None = None) -> Result:
    column = np.empty(len(vertex), object)
    column[:] = vertex
    old = np.zeros(len(vertex), np.int32)
    return Result("5f0c", 7, 0, 1, 9, "core", column, old, old + 1, alert)


RESULTS = st.one_of(
    st.builds(
        Result, st.text(), *[st.integers(0, 2**63 - 1)] * 3, st.integers(-(2**63), 2**63 - 1),
        st.text(), old=st.integers(0, 2**64 - 1), new=st.integers(0, 2**64 - 1),
        alert=st.none() | st.text(),
    ),
    st.builds(
        of_vertices, st.lists(st.text() | st.integers(-(2**63), 2**64 - 1)), st.none() | st.text()
    ),
)  # fmt: skip


@given(RESULTS, st.data())
def test_each_beginning_of_a_line_is_known_and_one_with_a_byte_of_another_is_not(
    result: Result, data: st.DataObject
) -> None:
    line = result_line(result)
    assert all(begins_result_line(line[:n]) for n in range(len(line) + 1))
    head = line.index(b'"time":')
    place = data.draw(st.integers(0, head))
    for other in (b"\n", b"\0", b"\xff"):
        assert not begins_result_line(line[:place] + other + line[place + 1 :])


@given(st.integers(0, 2 * FIRST_PIECE_BYTES), st.integers(0, 300), st.booleans())
def test_a_cut_file_keeps_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, long: int, left: int, alone: bool
) -> None:
    path = tmp_path_factory.mktemp("cut") / "r"
    lines = [] if alone else [TOTAL, of_vertices(["n" * 1000] * (long // 1000) + [5])]
    whole = b"".join(result_line(result) + b"\n" for result in lines)
    path.write_bytes(whole + result_line(TOTAL)[:left])
    sink = opened(path)
    assert path.read_bytes() == whole
    assert repr(sink.newest()) == repr(
        decode_result_line(whole.splitlines()[-1]) if lines else None
    )
    sink.send([TOTAL])
    sink.close()
    assert path.read_bytes() == whole + result_line(TOTAL) + b"\n"


OURS = result_line(TOTAL)


@pytest.mark.parametrize(
    "content",
    [
        b'{"settings": {"a": 1}}',
        b'{"figure": "core", "run": "5f0c"}',
        b'{"alert":"core > 1"}',
        b'[{"figure":"core"',
        b"{}",
        b"\0" * 9,
        b"1 2\n",
        b"\n",
        b"1 2\n" + OURS[:20],
        b"1 2\n" + OURS,
        OURS + b" ",
        OURS + b"\nmy own notes",
        OURS + b'\n{"settings": 1}',
        OURS[:-1] + b"\n",
        b'{"figure":"' * 2_000_000,
    ],
    ids=lambda content: repr(content[:24]) + str(len(content)),
)
def test_what_is_no_file_of_results_is_refused_untouched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"config.json: this is no file of results.*name another"):
        opened(path)
    assert path.read_bytes() == content


def largest() -> Result:
    """A record as full as they are made (`Changes._parts`), of names that are long as JSON."""
    name = "\x01" * MAX_NAME_BYTES
    return of_vertices([name] * (MAX_RESULT_BYTES // (MAX_NAME_BYTES + ROW_BYTES)), "core >= 2")


@pytest.mark.parametrize("left", [0, 100, MAX_LINE_BYTES - 200_000])
def test_the_largest_lines_are_taken_up_again(tmp_path: Path, left: int) -> None:
    path, line = tmp_path / "r", result_line(largest())
    assert MAX_LINE_BYTES - 150_000 < len(line) < MAX_LINE_BYTES
    path.write_bytes(OURS + b"\n" + line + b"\n" + line[:left])
    sink = opened(path)
    newest = sink.newest()
    sink.close()
    assert newest is not None
    assert newest.rows == largest().rows
    assert path.stat().st_size == len(OURS) + len(line) + 2


def test_of_a_long_file_with_short_lines_little_is_read() -> None:
    class Counting(io.BytesIO):
        bytes_read = 0

        def read(self, size: int | None = -1, /) -> bytes:
            found = super().read(size)
            self.bytes_read += len(found)
            return found

    file = Counting((OURS + b"\n") * (2 * MAX_LINE_BYTES // len(OURS) + 1))
    newest, end, size = end_of(file)
    assert newest == TOTAL
    assert end == size > 2 * MAX_LINE_BYTES
    assert file.bytes_read == FIRST_PIECE_BYTES


def test_no_line_is_longer_than_is_said() -> None:
    ids = np.full(MAX_RESULT_ROWS, 2**64 - 1, np.uint64)
    least = np.full(MAX_RESULT_ROWS, -(2**31), np.int32)
    most = Result("5" * 64, 2**63, 1, 1, -(2**63), "core", ids, least, least, "\\" * 64)
    assert len(result_line(most)) < MAX_LINE_BYTES
    one = of_vertices(["\x01"] * MAX_RESULT_ROWS)
    assert len(result_line(one)) < MAX_LINE_BYTES


@pytest.mark.parametrize(
    "kind", ["directory", "pipe", "/dev/null", "/dev/full", "/dev/zero", "link"]
)
def test_only_plain_files_are_taken(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "place"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/null")
    else:
        path = Path(kind)
    with pytest.raises(SourceError, match=f"^{path}: is not a plain file.*name another file"):
        opened(path)
