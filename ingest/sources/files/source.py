"""A file of edges as a stream: the same operations at the same offsets, at a chosen rate.

Idea: the offset of an operation is its place in the file, counted in operations (a bad line counts
as one), so that a checkpoint's offsets mean the same whatever the block size. Seeking reads the
file again from its start and skips what lies before.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self, Unpack

from ...arguments import by_name
from ...errors import OffsetError, SourceError
from ...fields import Fields
from ...formats.names import names_of
from ...types import MAX_TEXT_BYTES, Ids, Partition, Polled, Rejected
from ..base import FILES, Identity, Source
from .edges import EdgeFile, format_in, open_edges
from .left_out import MAX_CHARACTERS
from .pieces import Piece, Value
from .reading import KIND_NAMES, Arguments, Asked

LAST_PIECES = 8  # of which lines can be shown
KEPT_LINES = 1000  # bad lines that are remembered
# What identities keep, in this order; of the second, what was said.
_ROLES = ("source", "target", "weight", "time", "header")
_MORE = ("kind", "kinds", "decimal", "thousands", "time_unit", "bipartite")


class FileSource(Source):
    """The operations of the edge list `path`, as a Source with one partition.

    format: as `read_edges` has it; None: by content, then by name.
    rate: operations per second, None for as fast as they are read. chunk: operations a poll, at
    most. mirror: as `read_edges` has it; say False for an undirected graph. json: the
    fields of JSON lines, if their names differ from the default. options: as `read_edges` has them;
    where vertices go by names, the pipeline or its graph needs names=True. Raises SourceError if
    the file cannot be read as such.

    `reading` says how the file is read. `left`, of a file with two kinds of vertices that go by
    numbers, is how many the left side has: `lpma.Graph(left=source.left)` keeps it. By name they
    come as the file has them, and it is None.

    >>> _ = Path("edges.txt").write_text("1 2\\n2 3\\n")
    >>> with ingest.Pipeline(ingest.FileSource("edges.txt"), lpma.Graph(device="cpu")) as pipeline:
    ...     pipeline.run()
    2
    """

    bounded = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        rate: float | None = None,
        chunk: int = 50_000,
        mirror: bool = True,
        json: Fields | None = None,
        clock: Callable[[], float] = monotonic,
        ids: Ids | None = None,
        **options: Unpack[Arguments],
    ) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise SourceError(f"{self.path}: no such file")
        self.format = format_in(self.path, format)
        if json is not None and self.format != "jsonl":
            raise SourceError(
                f"{self.path}: not JSON lines, as a .jsonl has them: json is for these"
            )
        if chunk < 1 or not (rate is None or rate > 0):
            raise SourceError("chunk and rate are positive")
        names = options.get("names")
        if names is not None or ids is not None:
            names = by_name(False if names is None else names, ids, SourceError)
        self.json = json and json.of_topic()
        self._asked = Asked.of(options)
        said: dict[str, Any] = {**options, "kinds": dict(options.get("kinds") or {})}
        self._options = (said.get("columns"), said.get("separator"), mirror)
        self._named = {name: said.get(name) for name in _ROLES}
        self._more = {
            name: said[name] for name in _MORE if said.get(name) or said.get(name) is False
        }
        self._chunk = chunk
        self._rate = rate
        self._clock = clock
        self._digest = "", ""  # the state of the file, and its digest
        name = re.sub(r"[^A-Za-z0-9._-]", "_", self.path.name)[:MAX_TEXT_BYTES]
        self.partition = Partition(name, 0)
        # Guessed once: a line that would have it otherwise is a bad line.
        self.names = self._opened(None).reading.named if names is None else names
        self._rewind()
        if self.reading.directed is not False:  # it reads the same, so it has the same identity
            self._options = (*self._options[:2], True)

    def _opened(self, names: bool | None) -> EdgeFile:
        asked = replace(self._asked, names=names)
        return open_edges(self.path, asked, self.format, self.json, self._options[2])

    def values(self) -> Iterator[Value]:
        """All that it holds, from its beginning, whatever the rate. It stays where it stands."""
        return _values(self._opened(self.names))

    def _rewind(self) -> None:
        file = self._opened(self.names)
        self.reading = file.reading
        self.left = None if self.names else file.left
        self.mirrors = file.reading.mirror
        self._last: deque[tuple[int, Piece]] = deque(maxlen=LAST_PIECES)  # by their offsets
        values = self._noting_pieces(file)
        self._values: Iterator[Value] = map(_by_name, values) if self.names else values
        self._ahead: deque[Polled] = deque()  # read, and not yet polled
        self._read = 0  # operations read
        self._position = 0  # operations polled
        self._started: tuple[float, int] | None = None  # when the rate counts from, and where
        self._bad_lines: dict[int, Rejected] = {}  # by offset, the beginning of each

    def poll(self, max_records: int = 500, timeout: float = 0.0) -> list[Polled]:
        limit = self._allowed(timeout)
        polled: list[Polled] = []
        while limit > 0 and len(polled) < max_records and self._look_ahead():
            record = self._ahead.popleft()
            if record.last - record.offset >= limit:
                record, rest = record.split(record.offset + limit)
                self._ahead.appendleft(rest)
            polled.append(record)
            if isinstance(record.value, Rejected) and len(self._bad_lines) < KEPT_LINES:
                bad = replace(record.value, value=record.value.value[:MAX_CHARACTERS])
                self._bad_lines[record.offset] = bad
            self._position = record.last + 1
            limit -= self._position - record.offset
        return polled

    def bad_line(self, offset: int) -> Rejected | None:
        """The beginning of a bad line by its offset, of the first thousand polled, or of any line
        that was read not long ago, if an operation is a line; None of others."""
        if (bad := self._bad_lines.get(offset)) is not None:
            return bad
        first, piece = next((each for each in reversed(self._last) if each[0] <= offset), (0, None))
        if piece is None or piece.line_of is None or piece.mirror or piece.stored:
            return None
        found = piece.line_of(offset - first)
        return replace(found, value=found.value[:MAX_CHARACTERS])

    def _noting_pieces(self, file: EdgeFile) -> Iterator[Value]:
        """The file's values; notes which pieces were read last."""
        first = 0
        for piece in file.pieces():
            self._last.append((first, piece))
            for value in piece.values():
                yield value
                first += 1 if isinstance(value, Rejected) else len(value)

    def _allowed(self, timeout: float) -> int:
        """How many operations may be polled now, after waiting up to `timeout` for one."""
        if self._rate is None or not self._look_ahead():
            return self._chunk
        now = self._clock()
        if self._started is None:
            self._started = (now, self._position)
        since, base = self._started
        due = since + (self._position + 1 - base) / self._rate
        if due > now:
            sleep(min(due - now, timeout))
            now = self._clock()
        return min(self._chunk, base + int((now - since) * self._rate) - self._position)

    def _look_ahead(self) -> bool:
        """Read the next run of operations if none is ready; returns whether one is."""
        if not self._ahead:
            for value in self._values:
                self._ahead.append(Polled(self.partition, self._read, value))
                self._read = self._ahead[-1].last + 1
                break
        return bool(self._ahead)

    def seek(self, positions: Mapping[Partition, int]) -> None:
        for partition, offset in positions.items():
            if partition != self.partition:
                raise OffsetError(f"{partition}: this source is {self.partition}")
            self._rewind()
            while self._read < offset and self._look_ahead():
                record = self._ahead.popleft()
                if record.last >= offset > record.offset:
                    self._ahead.append(record.split(offset)[1])
            if self._read < offset:
                raise OffsetError(
                    f"{self.path}: has {self._read} operations, {offset} were asked for: "
                    "is it the file the checkpoint was taken from?"
                )
            self._position = offset

    def positions(self) -> dict[Partition, int]:
        return {self.partition: self._position}

    def at_end(self) -> bool:
        return not self._look_ahead()

    def identity(self) -> Identity:
        """A file is identified by all its bytes, and by how it is read: in one that was rewritten,
        or grew, the same offsets mean other operations. Digesting takes a second per gigabyte."""
        others: list[object] = ["mapped"] if self.names else []  # the word of older checkpoints
        if self.json is not None:
            others.append(_named_fields(self.json))
        if any(option is not None for option in self._named.values()):
            others.append(repr(tuple(self._named.values())))
        others += [self._more] if self._more else []
        if "kind" not in self.reading.places and any(
            name.lower() in KIND_NAMES for name in self.reading.columns
        ):
            others.append("kinds are not guessed")  # as they were once
        others += ["two kinds"] if self.reading.bipartite else []
        read = (self.format, *self._options, *others)
        try:
            with open(self.path, "rb") as file:
                found = os.fstat(file.fileno())
                state = f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
                if self._digest[0] != state:
                    self._digest = state, hashlib.file_digest(file, _blake2b).hexdigest()
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be read: {error}") from error
        name = f"{self._digest[1]}-{_blake2b(repr(read).encode()).hexdigest()}"
        return Identity(FILES, {self.partition.topic: name}, self._read_as())

    def _read_as(self) -> dict[str, Any] | None:
        """How it is read, as JSON has it; None if JSON would not give the same back."""
        columns, separator, mirror = self._options
        if not isinstance(columns, str | list | dict | None):
            return None
        return {
            "format": self.format, "columns": columns, "delimiter": separator, "mirror": mirror,
            "names": self.names, "json": self.json and self.json.to_json(), **self._named,
            **self._more,
        }  # fmt: skip

    @classmethod
    def again(cls, path: str | os.PathLike[str], read_as: Mapping[str, Any]) -> Self:
        """A file read as the identity of an earlier source says. Raises as the constructor."""
        given = {**read_as, "json": read_as["json"] and Fields.from_json(read_as["json"])}
        return cls(path, separator=given.pop("delimiter"), **given)


class _AsIs(str):
    """Text whose representation is itself."""

    __repr__ = str.__str__


def _named_fields(fields: Fields) -> _AsIs:
    """The fields as identities have always had them."""
    named = ", ".join(f"{name}={value!r}" for name, value in fields.to_json().items())
    return _AsIs(f"JsonFields({named})")


def _values(file: EdgeFile) -> Iterator[Value]:
    return (value for piece in file.pieces() for value in piece.values())


def _by_name(value: Value) -> Value:
    """Rows whose ends are names as a pipeline takes them: see `Names`."""
    if isinstance(value, Rejected):
        return value
    return value.replace(src=names_of(value.src, "src"), dst=names_of(value.dst, "dst"))


def _blake2b(data: bytes = b"") -> Any:
    return hashlib.blake2b(data, digest_size=16)
