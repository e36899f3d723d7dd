"""The journal: what was written comes back, in order, through all segments, or is found out."""

from __future__ import annotations

import errno
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest import CheckpointError, Partition
from ingest.state.journal import (
    HEAD_BYTES,
    SYNCED_NAME,
    Chunk,
    Cut,
    Entry,
    Journal,
    chunks,
    read_synced,
    segment_numbers,
    segment_path,
)
from ingest.state.journal_reader import go_on_behind, read_journal

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


def read(directory: Path, first: int = 0) -> list[Entry]:
    """The entries of a journal that must be whole."""
    history = read_journal(directory, first)
    assert history.damage is None, history.damage
    return history.entries


def damage(directory: Path, first: int = 0) -> str | None:
    found = read_journal(directory, first).damage
    return None if found is None else found.problem


def flips(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Every byte from `start` on, changed in its lowest, its highest and all of its bits."""
    for at in range(start, len(data)):
        for bits in (0x01, 0x80, 0xFF):
            yield at, data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def test_entries_come_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 3)
    journal.append(ENTRIES[:1])
    journal.append(ENTRIES[1:])
    journal.sync()
    assert journal.size == journal.path.stat().st_size
    journal.sync()
    assert journal.size == journal.path.stat().st_size, "nothing new, nothing to say"
    journal.close()
    (found,) = read_journal(tmp_path, 3).segments
    assert found.entries == ENTRIES
    assert (found.good, found.torn, found.problem) == (journal.size, 0, None)
    assert {path.name for path in tmp_path.iterdir()} == {"journal-0000000003", "synced"}


def test_segments_are_one_journal(tmp_path: Path) -> None:
    journal = written(tmp_path, ENTRIES[:2], [], ENTRIES[2:])
    assert segment_numbers(tmp_path) == [0, 1, 2]
    for first, entries in ((0, ENTRIES), (1, ENTRIES[2:]), (2, ENTRIES[2:])):
        assert read(tmp_path, first) == entries
        last = read_journal(tmp_path, first).segments[-1]
        assert (last.number, last.good) == (2, journal.size)


def test_another_writer_goes_on_in_a_segment_of_its_own(tmp_path: Path) -> None:
    first = written(tmp_path, ENTRIES[:2], ENTRIES[2:3])
    second = go_on_behind(read_journal(tmp_path, 0))
    assert second.number == 2
    first.append([Cut(99)])  # too late: it has been taken over
    first.sync()
    second.append(ENTRIES[3:])
    assert read(tmp_path) == ENTRIES
    third = go_on_behind(read_journal(tmp_path, 0))
    assert read(tmp_path) == ENTRIES
    for journal in (first, second, third):
        journal.close()


def test_neighbours_become_one_chunk() -> None:
    records = [Chunk(1, A, 0, 0), Chunk(1, A, 1, 4), Chunk(1, B, 0, 0), Chunk(1, A, 5, 5),
               Chunk(2, A, 6, 6), Chunk(2, A, 7, 7, shed=True)]  # fmt: skip
    assert chunks(records) == [Chunk(1, A, 0, 4), *records[2:]]


def half_synced(directory: Path) -> tuple[bytes, list[int], int]:
    """A segment of which the first two entries were synced: its bytes, where each entry ends, and
    how far it was synced."""
    journal = Journal(directory, 0)
    ends = []
    synced = 0
    for entry in ENTRIES:
        journal.append([entry])
        ends.append(journal.size)
        if len(ends) == 2:
            synced = journal.size
            journal.sync()
    journal.close()
    return journal.path.read_bytes(), ends, synced


@pytest.mark.parametrize("older", [False, True])
def test_a_cut_behind_what_was_synced_is_a_torn_end(tmp_path: Path, older: bool) -> None:
    """Whatever the next writer finds behind the last good entry is not read again either. An older
    release left no file that says what was synced: there a cut before the proof is a torn end too,
    since the proof is gone with it."""
    good, ends, synced = half_synced(tmp_path)
    path, said = segment_path(tmp_path, 0), (tmp_path / SYNCED_NAME).read_bytes()
    left = [(n, good[:n]) for n in range(HEAD_BYTES if older else synced, len(good))]
    left += [(len(good), good + bytes(100)), (len(good), good + b"\xff" * 100)]
    for at, data in left:
        path.write_bytes(data)
        (tmp_path / SYNCED_NAME).unlink() if older else (tmp_path / SYNCED_NAME).write_bytes(said)
        whole = [e for e, end in zip(ENTRIES, ends, strict=True) if end <= at]
        assert read(tmp_path) == whole
        journal = go_on_behind(read_journal(tmp_path, 0))
        journal.append([Cut(77)])
        journal.close()
        assert read(tmp_path) == [*whole, Cut(77)]
        journal.path.unlink()
        assert damage(tmp_path) == "journal-0000000001 is missing"


def test_a_cut_in_what_was_synced_is_damage(tmp_path: Path) -> None:
    """At any length, also where the proofs are gone with the end: a reply rests on what is missing.
    So it is where the whole segment is gone."""
    good, ends, synced = half_synced(tmp_path)
    path = segment_path(tmp_path, 0)
    for at in range(synced):
        path.write_bytes(good[:at])
        assert re.search("damaged at byte|cut short", str(damage(tmp_path)))
        entries = [e for e, end in zip(ENTRIES, ends, strict=True) if end <= at]
        assert read_journal(tmp_path, 0).entries == entries
    path.unlink()
    assert damage(tmp_path) == "journal-0000000000 is missing"


def test_a_cut_is_damage_in_the_segment_of_a_writer_that_went_on(tmp_path: Path) -> None:
    """It says how far its own segment is synced, behind what the writer before it said."""
    half_synced(tmp_path)
    journal = go_on_behind(read_journal(tmp_path, 0))
    journal.append(ENTRIES[2:])
    synced = journal.size
    journal.sync()
    journal.close()
    good = journal.path.read_bytes()
    for at in range(len(good)):
        journal.path.write_bytes(good[:at])
        assert (damage(tmp_path) is None) == (at >= synced), at
    journal.path.unlink()
    assert damage(tmp_path) == "journal-0000000001 is missing"


def test_damage_of_the_file_that_says_what_was_synced_is_no_damage_of_the_journal(
    tmp_path: Path,
) -> None:
    """Of two slots the older one stays when a write of the newer one tears: it says less, and
    nothing that is not. Without both, the proofs in the segment say it."""
    journal = Journal(tmp_path, 0)
    sizes = []
    for entry in ENTRIES:
        journal.append([entry])
        sizes.append(journal.size)
        journal.sync()
    journal.close()
    said = tmp_path / SYNCED_NAME
    good = said.read_bytes()
    found = set()
    slots = [*range(40), *range(4096, 4096 + 40)]
    damaged = [bytes(len(good)), *(good[:at] for at in slots)]
    damaged += [data for at, data in flips(good) if at in slots]
    for data in damaged:
        said.write_bytes(data)
        assert read(tmp_path) == ENTRIES
        synced = read_synced(tmp_path)
        found.add(None if synced is None else synced.whole)
    assert found == {None, *sizes[-2:]}


def test_what_was_synced_of_another_segment_is_not_asked_of_this_one(tmp_path: Path) -> None:
    """It has the number of one that was there before, or a successor that decides."""
    (tmp_path / "other").mkdir()
    long = written(tmp_path / "other", ENTRIES * 3)
    long.sync()
    long.close()
    written(tmp_path, ENTRIES[:1]).close()
    said = (tmp_path / "other" / SYNCED_NAME).read_bytes()
    (tmp_path / SYNCED_NAME).write_bytes(said)
    assert read(tmp_path) == ENTRIES[:1]
    first = written(tmp_path, ENTRIES[:1])
    go_on_behind(read_journal(tmp_path, 0)).close()
    first.append(ENTRIES[1:])  # too late: it has been taken over
    first.sync()
    first.close()
    assert read(tmp_path) == ENTRIES[:1]


def test_any_byte_that_changes_in_synced_content_is_noticed(tmp_path: Path) -> None:
    """In every segment, the last one too. A proof with nothing behind it may go: what is before it
    is whole."""
    journal = Journal(tmp_path, 0)
    for entries in (ENTRIES[:1], ENTRIES[1:2]):
        journal.append(entries)
        journal.sync()
    journal.rotate()
    for entry in ENTRIES[2:]:
        journal.append([entry])
        before = journal.size
        journal.sync()
    journal.close()
    for number, end in ((0, read_journal(tmp_path, 0).segments[0].good), (1, before)):
        path = segment_path(tmp_path, number)
        good = path.read_bytes()
        assert len(good) > end
        for at, data in flips(good):
            path.write_bytes(data)
            if at < end:
                assert str(damage(tmp_path)).startswith(path.name)
                entries = read_journal(tmp_path, 0).entries
                assert entries == ENTRIES[: len(entries)], "a true beginning"
            else:
                assert read(tmp_path) == ENTRIES
            if number == 0:
                assert read(tmp_path, 1) == ENTRIES[2:], "from 1 on it is not needed"
        path.write_bytes(good)
    assert read(tmp_path) == ENTRIES


def test_what_a_power_cut_leaves_of_what_was_not_synced_is_torn(tmp_path: Path) -> None:
    """Any of the sectors written since may be there and any may not, in any order: entries behind a
    bad one are no proof. The same in what was synced is damage."""
    journal = Journal(tmp_path, 0)
    journal.append(ENTRIES)
    synced = journal.size  # the proof is written after the sync, and not synced itself
    journal.sync()
    journal.append(ENTRIES * 5)
    data = journal.path.read_bytes()
    journal.close()
    rng = random.Random(7)
    sector = 16
    torn = set()
    for _ in range(1000):
        left = bytearray(data[: rng.randrange(synced, len(data) + 1)])
        for start in range(synced, len(left), sector):
            if rng.random() < 0.3:
                left[start : start + sector] = bytes(len(left[start : start + sector]))
        journal.path.write_bytes(left)
        history = read_journal(tmp_path, 0)
        assert history.damage is None
        assert history.entries[:4] == ENTRIES
        assert history.entries == (ENTRIES * 6)[: len(history.entries)]
        torn.add(history.torn > 0)
    assert torn == {True, False}
    for start in range(HEAD_BYTES, synced - sector, sector):
        left = bytearray(data)
        left[start : start + sector] = bytes(sector)
        journal.path.write_bytes(left)
        assert "is damaged at byte" in str(damage(tmp_path))


def test_a_proof_of_another_segment_proves_nothing(tmp_path: Path) -> None:
    """A disk may show what a file that is gone has left there."""
    (tmp_path / "other").mkdir()
    other = written(tmp_path / "other", ENTRIES * 3)
    other.sync()
    stale = other.path.read_bytes()
    other.close()
    journal = written(tmp_path, ENTRIES[:1])
    journal.sync()
    journal.close()
    own = journal.path.read_bytes()
    for tail in (stale[len(own) :], stale[HEAD_BYTES:], bytes(9) + stale[HEAD_BYTES:]):
        journal.path.write_bytes(own + tail)
        assert read(tmp_path) == ENTRIES[:1]
        assert read_journal(tmp_path, 0).torn == len(tail)


def test_a_segment_with_a_successor_is_whole_or_refused(tmp_path: Path) -> None:
    written(tmp_path, ENTRIES[:2], ENTRIES[2:]).close()
    path = segment_path(tmp_path, 0)
    good = path.read_bytes()
    counts = read_journal(tmp_path, 0).segments[0].good
    for at in range(len(good)):
        path.write_bytes(good[:at])
        if at < counts:
            assert re.search("damaged|cut short", str(damage(tmp_path)))
        else:
            assert read(tmp_path) == ENTRIES, "only the seal is cut"
        assert read(tmp_path, 1) == ENTRIES[2:], "from 1 on it is not needed"
    path.write_bytes(good + b"what a writer appended that had been taken over")
    assert read(tmp_path) == ENTRIES


def test_a_damaged_head_another_number_or_format_is_refused(tmp_path: Path) -> None:
    written(tmp_path, ENTRIES[:2], [], ENTRIES[2:]).close()
    for number in (0, 2):
        path = segment_path(tmp_path, number)
        good = path.read_bytes()
        for at, flipped in flips(good[:HEAD_BYTES]):
            for data in (good[:at], flipped + good[HEAD_BYTES:]):
                path.write_bytes(data)
                assert str(damage(tmp_path, number)).startswith(path.name)
        path.write_bytes(b"LPMAJRN2" + good[8:])
        assert "is of format b'2', but this release reads b'3'" in str(damage(tmp_path, number))
        path.write_bytes(good)
    os.rename(segment_path(tmp_path, 1), segment_path(tmp_path, 3))
    assert damage(tmp_path, 0) == "journal-0000000001 is missing"
    assert damage(tmp_path, 3) == "journal-0000000003 is segment 1 under another name"


def test_a_segment_that_is_missing_is_noticed(tmp_path: Path) -> None:
    """The last one too, and several: those before it say that they were gone on behind. Whatever
    stood before the first that is missing is told."""
    journal = written(tmp_path, ENTRIES[:1], ENTRIES[1:2])
    journal.close()
    for entry in ENTRIES[2:]:
        journal = go_on_behind(read_journal(tmp_path, 0))
        journal.append([entry])
        journal.close()
    kept = {number: segment_path(tmp_path, number).read_bytes() for number in range(4)}
    for missing in range(1, 16):
        gone = [number for number in kept if missing >> number & 1]
        for number in gone:
            segment_path(tmp_path, number).unlink()
        history = read_journal(tmp_path, 0)
        assert history.damage is not None
        assert history.damage.problem == f"journal-{gone[0]:010d} is missing"
        assert history.entries == ENTRIES[: gone[0]]
        for number in gone:
            segment_path(tmp_path, number).write_bytes(kept[number])
    assert read(tmp_path) == ENTRIES


def test_a_writer_that_was_stopped_before_it_sealed_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has been written behind the seal that is not there; before anything is, it is."""
    journal = written(tmp_path, ENTRIES[:2])

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("ingest.state.journal.seal", failing)
        with pytest.raises(CheckpointError, match="cannot be sealed"):
            journal.rotate()
    with pytest.raises(CheckpointError, match="earlier write failed"):
        journal.append(ENTRIES[2:])
    journal.close()
    assert segment_numbers(tmp_path) == [0, 1]
    assert not read_journal(tmp_path, 0).segments[0].sealed
    journal = go_on_behind(read_journal(tmp_path, 0))
    journal.append(ENTRIES[2:])
    journal.close()
    assert read(tmp_path) == ENTRIES
    for number in (1, 2):
        segment_path(tmp_path, number).unlink()
    assert damage(tmp_path) == "journal-0000000001 is missing"


def test_each_step_is_on_the_disk_before_what_rests_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes before what proves them, a segment before the next one and before its own name, names
    before the seal, and that before any entry behind it."""
    calls: list[str] = []

    def noted(name: str) -> None:
        real = getattr(os, name)

        def call(file: Any, *rest: Any) -> Any:
            path = Path(os.readlink(f"/proc/self/fd/{file}") if isinstance(file, int) else file)
            calls.append(f"{name} {path.name.removeprefix('.tmp-')}")
            return real(file, *rest)

        monkeypatch.setattr(os, name, call)

    def made() -> list[str]:
        found = [call.replace(tmp_path.name, "directory") for call in calls]
        calls.clear()
        return [call.replace("journal-000000000", "") for call in found]

    journal = Journal(tmp_path, 0)
    for name in ("write", "fsync", "rename", "pwrite", "fdatasync"):
        noted(name)
    begun = ["write {0}", "fsync {0}", "rename {0}", "fsync directory"]
    journal.append(ENTRIES)
    journal.sync()
    assert made() == ["write 0", "fsync 0", "write 0", "pwrite synced", "fdatasync synced"]
    journal.rotate()
    assert made() == ["fsync 0", *(s.format(1) for s in begun), "write 0", "fsync 0"]
    journal.append(ENTRIES)
    journal.close()
    assert made() == ["write 1"]
    go_on_behind(read_journal(tmp_path, 0)).close()
    assert made() == ["fsync 1", *(s.format(2) for s in begun), "write 1", "fsync 1"]


def test_what_keeps_it_from_being_read_is_no_damage_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody gives up a journal because there were too many open files. A bad disk is damage."""
    written(tmp_path, ENTRIES).close()
    numbers = [errno.EMFILE, errno.EACCES, errno.EIO]

    def failing(path: Path) -> bytes:
        number = numbers.pop(0)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "read_bytes", failing)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="cannot be read"):
            read_journal(tmp_path, 0)
    assert "cannot be read" in str(damage(tmp_path))


def test_a_segment_that_begins_anew_goes_on_from_nothing(tmp_path: Path) -> None:
    """What was given up once is not read as the beginning of what came after."""
    written(tmp_path, ENTRIES[:2]).close()
    journal = Journal(tmp_path, 1)
    journal.append(ENTRIES[2:])
    journal.close()
    assert "was given up" in str(damage(tmp_path, 0))
    assert read_journal(tmp_path, 0).entries == ENTRIES[:2]
    assert read(tmp_path, 1) == ENTRIES[2:]


def test_reading_beside_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that is begun, or that grows, while another one is read is no damage."""
    journal = written(tmp_path, ENTRIES[:1], ENTRIES[1:2])
    real = Path.read_bytes

    def slow(path: Path) -> bytes:
        data = real(path)
        journal.append([Cut(1)])
        journal.sync()
        journal.rotate()
        return data

    def late(path: Path) -> bytes:
        journal.append([Cut(1)])
        journal.sync()
        journal.rotate()
        return real(path)

    for way in (slow, late, slow):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", way)
            assert read(tmp_path)[:2] == ENTRIES[:2]
    journal.close()


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
    assert read(tmp_path) == ENTRIES[:2]
    journal.append(ENTRIES[2:])
    journal.close()
    assert read(tmp_path) == ENTRIES


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:3]))
    written(tmp_path, ENTRIES[:2], ENTRIES[2:]).close()
    assert read(tmp_path) == ENTRIES


def test_a_write_that_takes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = written(tmp_path, ENTRIES)
    monkeypatch.setattr(os, "write", lambda file, data: 0)
    with pytest.raises(CheckpointError, match="took nothing"):
        journal.append(ENTRIES)


@pytest.mark.parametrize("call", ["fsync", "pwrite", "fdatasync"])
def test_after_a_failed_sync_nothing_more_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    journal = written(tmp_path, ENTRIES)

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(CheckpointError, match="cannot be synced"):
            journal.sync()
    if call == "fsync":
        assert b"synced" not in journal.path.read_bytes(), "that would be a lie"
        assert read_synced(tmp_path) is None
    for later in (lambda: journal.append(ENTRIES), journal.sync, journal.rotate):
        with pytest.raises(CheckpointError, match="earlier write failed"):
            later()
    journal.close()


def test_what_the_next_segment_may_not_know_of_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rotation that failed half-way may have named the bytes of this segment that count."""
    journal = written(tmp_path, ENTRIES)

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("ingest.state.journal.fsync_directory", failing)
        with pytest.raises(CheckpointError, match="cannot be written"):
            journal.rotate()
    with pytest.raises(CheckpointError, match="earlier write failed"):
        journal.append(ENTRIES)
    assert read(tmp_path) == ENTRIES
