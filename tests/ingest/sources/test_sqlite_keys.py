"""Records with keys, and records without a value, in the embedded log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lpma
from ingest import Pipeline, SourceError, SqliteLog, encode_row
from ingest.sources.sqlite.order import SMALL_BYTES
from ingest.types import NO_VALUE, Polled, Rejected, Values

values = st.none() | st.binary(max_size=9) | st.just(b"x" * (SMALL_BYTES + 1))
record = st.tuples(values, st.none() | st.binary(max_size=9))


def content(polled: Sequence[Polled]) -> list[tuple[bytes | None, bytes]]:
    """Each record's value, and its key, b"" where it has none."""
    found: list[tuple[bytes | None, bytes]] = []
    for one in polled:
        if isinstance(one.value, Values):
            keys = one.value.keys or [b""] * len(one.value)
            found += zip(one.value, keys, strict=True)
        elif isinstance(one.value, Rejected):
            assert one.value is NO_VALUE
            found.append((None, one.key))
        else:
            found.append((one.value, one.key))  # type: ignore[arg-type]
    return found


@given(st.lists(record, max_size=9), st.lists(record, max_size=9), st.integers(1, 20))
@settings(deadline=None)
def test_what_is_written_is_read(
    first: list[tuple[bytes | None, bytes | None]],
    then: list[tuple[bytes | None, bytes | None]],
    most: int,
) -> None:
    with SqliteLog(":memory:") as log:
        for records in (first, then):
            log.produce_many("updates", [v for v, _ in records], keys=[k for _, k in records])
        expected = [(value, key or b"") for value, key in (*first, *then)]
        for together in (False, True):
            log.seek(dict.fromkeys(log.positions(), 0))
            found: list[tuple[bytes | None, bytes]] = []
            while polled := log.poll_many(most, 0.0) if together else log.poll(most):
                found += content(polled)
            assert found == expected


def test_a_log_without_keys_stays_as_older_releases_read_it(tmp_path: Path) -> None:
    """And becomes one with keys by the first that has one, for readers that are open, too."""
    path = tmp_path / "log"
    with SqliteLog(path) as log, SqliteLog(path) as reader:
        log.produce("updates", b"a")
        assert log._file.one("PRAGMA user_version") == (2,)
        assert content(reader.poll()) == [(b"a", b"")]
        log.produce("updates", b"b", key=b"k")
        assert log._file.one("PRAGMA user_version") == (3,)
        assert content(reader.poll()) == [(b"b", b"k")]
    with SqliteLog(path, writable=False) as reader:
        assert content(reader.poll()) == [(b"a", b""), (b"b", b"k")]


def test_bad_keys_are_refused_and_nothing_is_written() -> None:
    with SqliteLog(":memory:") as log:
        for keys in ([b"k"], [b"k", "l"], [b"k", b"l", b"m"]):
            with pytest.raises(SourceError):
                log.produce_many("updates", [b"a", b"b"], keys=keys)  # type: ignore[arg-type]
        assert not log.poll()


def test_a_record_without_a_value_is_a_dead_letter_where_it_means_nothing() -> None:
    with SqliteLog(":memory:") as log:
        log.produce_many("updates", [encode_row(1, 2), None, encode_row(2, 3)], keys=[b"k"] * 3)
        with Pipeline(log, lpma.Graph(device="cpu")) as pipeline:
            pipeline.run("end")
            assert pipeline.graph.num_edges == 2
            assert [letter.kind for letter in pipeline.outputs.kept] == ["unreadable"]
