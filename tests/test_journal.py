"""The journal: what was written comes back, in order, through all segments, or is found out."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ingest import CheckpointError, Partition
from ingest.journal import (
    HEAD_BYTES,
    Chunk,
    Cut,
    Entry,
    Journal,
    chunks,
    read_segment,
    read_since,
    segment_numbers,
    segment_path,
)

A, B = Partition("updates", 0), Partition("queries", 3)
ENTRIES: list[Entry] = [Chunk(10**12, A, 7, 9), Cut(5), Chunk(10**12 + 1, B, 2, 2), Cut(1)]


def written(directory: Path, *segments: list[Entry]) -> Journal:
    """A journal with those entries in segments 0, 1, …; the last one is open."""
    journal = Journal(directory, 0)
    for number, entries in enumerate(segments):
        if number:
            assert journal.rotate() == number
        journal.append(entries)
    return journal


def test_entries_come_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 3)
    journal.append(ENTRIES[:1])
    journal.append(ENTRIES[1:])
    journal.sync()
    assert journal.size == journal.path.stat().st_size
    journal.close()
    found = read_segment(tmp_path, 3)
    assert found.entries == ENTRIES
    assert found.good == found.size == journal.size
    assert [path.name for path in tmp_path.iterdir()] == ["journal-0000000003"]


def test_segments_are_one_journal(tmp_path: Path) -> None:
    journal = written(tmp_path, ENTRIES[:2], [], ENTRIES[2:])
    assert segment_numbers(tmp_path) == [0, 1, 2]
    for first, entries in ((0, ENTRIES), (1, ENTRIES[2:]), (2, ENTRIES[2:])):
        found, last = read_since(tmp_path, first)
        assert found == entries
        assert (last.number, last.good) == (2, journal.size)


def test_another_writer_goes_on_in_a_segment_of_its_own(tmp_path: Path) -> None:
    first = written(tmp_path, ENTRIES[:2], ENTRIES[2:3])
    second = Journal.after(read_since(tmp_path, 0)[1])
    assert second.number == 2
    first.append([Cut(99)])  # too late: it has been taken over
    second.append(ENTRIES[3:])
    assert read_since(tmp_path, 0)[0] == ENTRIES
    third = Journal.after(read_since(tmp_path, 0)[1])
    assert read_since(tmp_path, 0)[0] == ENTRIES
    for journal in (first, second, third):
        journal.close()


def test_neighbours_become_one_chunk() -> None:
    records = [Chunk(1, A, 0, 0), Chunk(1, A, 1, 4), Chunk(1, B, 0, 0), Chunk(1, A, 5, 5),
               Chunk(2, A, 6, 6), Chunk(2, A, 7, 7, shed=True)]  # fmt: skip
    assert chunks(records) == [Chunk(1, A, 0, 4), *records[2:]]


def test_a_torn_or_damaged_end_is_left_out_for_good(tmp_path: Path) -> None:
    """Whatever the next writer finds behind the last good entry is not read again either."""
    journal = Journal(tmp_path, 0)
    ends = [HEAD_BYTES]
    for entry in ENTRIES:
        journal.append([entry])
        ends.append(journal.size)
    journal.close()
    path = segment_path(tmp_path, 0)
    good = path.read_bytes()
    places = range(HEAD_BYTES, len(good))
    damaged = [(n, good[:n]) for n in places]
    damaged += [(n, good[:n] + bytes([good[n] ^ 0x10]) + good[n + 1 :]) for n in places]
    damaged += [(len(good), good + bytes(100)), (len(good), good + b"\xff" * 100)]
    for at, data in damaged:
        path.write_bytes(data)
        whole = [e for e, end in zip(ENTRIES, ends[1:], strict=True) if end <= at]
        found, last = read_since(tmp_path, 0)
        assert found == whole
        journal = Journal.after(last)
        journal.append([Cut(77)])
        journal.close()
        assert read_since(tmp_path, 0)[0] == [*whole, Cut(77)]
        journal.path.unlink()


def test_a_segment_with_a_successor_is_whole_or_refused(tmp_path: Path) -> None:
    written(tmp_path, ENTRIES[:2], ENTRIES[2:]).close()
    path = segment_path(tmp_path, 0)
    good = path.read_bytes()
    for at in range(len(good)):
        for data in (good[:at], good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :]):
            path.write_bytes(data)
            with pytest.raises(CheckpointError, match=r"journal-0000000000: .*(damaged|cut short)"):
                read_since(tmp_path, 0)
            assert read_since(tmp_path, 1)[0] == ENTRIES[2:], "from 1 on it is not needed"
    path.write_bytes(good + b"what a writer appended that had been taken over")
    assert read_since(tmp_path, 0)[0] == ENTRIES


def test_a_damaged_head_a_gap_or_another_number_is_refused(tmp_path: Path) -> None:
    written(tmp_path, ENTRIES[:2], [], ENTRIES[2:]).close()
    for number in (0, 2):
        path = segment_path(tmp_path, number)
        good = path.read_bytes()
        for at in range(HEAD_BYTES):
            for data in (good[:at], good[:at] + bytes([good[at] ^ 0x01]) + good[at + 1 :]):
                path.write_bytes(data)
                with pytest.raises(CheckpointError):
                    read_since(tmp_path, number)
        path.write_bytes(good)
    os.rename(segment_path(tmp_path, 1), segment_path(tmp_path, 3))
    with pytest.raises(CheckpointError, match="journal-0000000001: cannot be read"):
        read_since(tmp_path, 0)
    with pytest.raises(CheckpointError, match="another format or number"):
        read_since(tmp_path, 3)


@pytest.mark.parametrize("short", [False, True])
def test_a_write_that_fails_leaves_no_half_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: bool
) -> None:
    journal = written(tmp_path, ENTRIES[:2])
    real = os.write

    def full(file: int, data: bytes) -> int:
        if short and len(data) > 5:
            return real(file, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(CheckpointError, match="No space left"):
            journal.append(ENTRIES[2:])
    assert read_since(tmp_path, 0)[0] == ENTRIES[:2]
    journal.append(ENTRIES[2:])
    journal.close()
    assert read_since(tmp_path, 0)[0] == ENTRIES


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:3]))
    written(tmp_path, ENTRIES[:2], ENTRIES[2:]).close()
    assert read_since(tmp_path, 0)[0] == ENTRIES


def test_a_write_that_takes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = written(tmp_path, ENTRIES)
    monkeypatch.setattr(os, "write", lambda file, data: 0)
    with pytest.raises(CheckpointError, match="took nothing"):
        journal.append(ENTRIES)


def test_after_a_failed_sync_nothing_more_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = written(tmp_path, ENTRIES)

    def failing(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(CheckpointError, match="cannot be synced"):
            journal.sync()
    for call in (lambda: journal.append(ENTRIES), journal.sync, journal.rotate):
        with pytest.raises(CheckpointError, match="earlier write failed"):
            call()
    journal.close()


def test_what_the_next_segment_may_not_know_of_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rotation that failed half-way may have named the bytes of this segment that count."""
    journal = written(tmp_path, ENTRIES)

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("ingest.journal.fsync_directory", failing)
        with pytest.raises(CheckpointError, match="cannot be written"):
            journal.rotate()
    with pytest.raises(CheckpointError, match="earlier write failed"):
        journal.append(ENTRIES)
    assert read_since(tmp_path, 0)[0] == ENTRIES
