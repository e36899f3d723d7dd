"""Lines of JSON as operations: an object a line, its fields as `docs/reference/format.md` has them.

Idea: pyarrow's reader parses a block at once, straight into the types that a batch needs. Where
that fails, because of a bad line, a missing field or a field of several types, each line is decoded
as a record of a log would be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lpma.batch.columns import Columns

from ...errors import RecordError, SourceError
from ...fields import Fields
from ...formats.kinds import FIELDS, WORDS
from ...formats.mapped import read_mapped
from ...formats.names import names_of
from ...formats.records import NamedVertex, decode_update
from ...formats.times import NOT_A_DATE, in_ms
from ...types import Record, Rejected
from .guess import SAMPLE_ROWS, guess_rows
from .opening import Block, read_blocks
from .pieces import NO_COLUMNS, Piece, check_guess
from .reading import Asked, Reading


def open_json_lines(
    path: Path, asked: Asked, fields: Fields | None
) -> tuple[Reading, Iterator[Piece]]:
    """How the file is read, and its pieces. fields: None: guess. Raises SourceError, OSError."""
    blocks = read_blocks(path)
    first = next(blocks, Block(b"", 1))
    exact = None
    if fields is not None:
        exact = msgspec.structs.replace(fields, time_unit=None).of_topic()
        roles = {role: name for role, name in exact.by_role().items() if role in FIELDS and name}
        unit = fields.time_unit or asked.fields.time_unit
        mapping = Fields(kinds=fields.kinds, time_unit=unit)
        asked = replace(asked, columns=roles, fields=mapping)
    reading = _guessed(path, first.data, asked)
    if exact is None:
        named: dict[str, Any] = {
            field: reading.columns[place] for field, place in reading.places.items()
        }
        named |= {name: getattr(asked.fields, name) for name in ("default_weight", "default_kind")}
        exact = Fields.from_json(named).of_topic()
    exact = msgspec.structs.replace(exact, time_unit=reading.unit or "ms")
    return reading, _pieces(chain([first], blocks), reading, exact)


def _guessed(path: Path, data: bytes, asked: Asked) -> Reading:
    objects = []
    for line in data.split(b"\n", SAMPLE_ROWS)[:SAMPLE_ROWS]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            objects.append(found)
    if not objects:
        raise SourceError(f"{path}: nothing was loaded: no line of the first is an object of JSON")
    names = list(dict.fromkeys(name for found in objects for name in found))
    said = [str(name) for name in asked.by_field().values()]
    exact = asked.columns is not None
    names += [name for name in said if name not in names and (exact or "." in name)]
    rows = [names] + [[_text(_at(found, name)) for name in names] for found in objects]
    told = replace(asked, header=True, separator=None)
    reading = guess_rows(path, "jsonl", rows, told, None, ", ".join(names))
    if reading.times == "decimal" and reading.unit is None:
        # A fraction is refused: see docs/reference/format.md.
        reading = replace(reading, times="whole")
    ends = [
        _at(found, reading.columns[reading.places[end]])
        for found in objects
        for end in ("src", "dst")
    ]
    if reading.guessed and any(isinstance(end, str) for end in ends):
        reading = replace(reading, named=True, why="")
    return replace(reading, header=None)


def _at(found: dict[str, Any], name: str) -> Any:
    """The field of that name, or else the one at the end of the path; None if there is none."""
    value: Any = found.get(name)
    if value is None and "." in name:
        value = found
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _pieces(blocks: Iterator[Block], reading: Reading, fields: Fields) -> Iterator[Piece]:
    used = [reading.columns[place] for place in reading.places.values()]
    plain = fields.default_weight == 1 and fields.default_kind == "append"
    plain = plain and fields.kind is None and not any("." in name for name in used)
    for block in blocks:
        columns = _parsed(block.data, reading) if plain else None
        if columns is not None:
            yield Piece(columns, line_of=partial(_line_of, block))
        else:
            yield from _decoded(block, reading, fields)


def _line_of(block: Block, place: int) -> Rejected:
    number, line = block.rows()[place]
    return Rejected(line, "", block.line + number)


def _parsed(data: bytes, reading: Reading) -> Columns | None:
    """The block's operations, if every line has every field, of one type and within its limits."""
    import pyarrow
    from pyarrow import json as reader

    from .tables import piece_of_arrow

    types = {
        "weight": pyarrow.float64(),
        "time": pyarrow.string() if reading.times == "dates" else pyarrow.int64(),
    }
    ends = [pyarrow.string(), pyarrow.int64()] if reading.named else [pyarrow.int64()]
    for end in [*ends, pyarrow.float64()] if reading.whole else ends:
        schema = pyarrow.schema(
            [(reading.columns[p], types.get(f, end)) for f, p in reading.places.items()]
        )
        try:
            table = reader.read_json(
                pyarrow.BufferReader(data),
                reader.ReadOptions(use_threads=False, block_size=len(data) + 1),
                reader.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            ).combine_chunks()
        except pyarrow.ArrowInvalid:
            continue
        if any(column.null_count or not column.num_chunks for column in table.columns):
            return None
        found = {f: table.column(reading.columns[p]).chunk(0) for f, p in reading.places.items()}
        try:
            piece = piece_of_arrow(found, replace(reading, guessed=False))
        except SourceError:
            return None
        return None if piece.bad else piece.columns
    return None


def _decoded(block: Block, reading: Reading, fields: Fields) -> Iterator[Piece]:
    run: list[Record] = []
    for number, line in enumerate(block.data.split(b"\n")):
        if not line.strip():
            continue
        try:
            found = _usual(read_mapped(line, fields), reading, fields)
            record = decode_update(found, reading.named)
        except RecordError as error:
            yield from _piece(run)
            run = []
            malformed = error.kind == "malformed"
            reason = "not an object of JSON in UTF-8" if malformed else str(error)
            is_name = isinstance(error, NamedVertex)
            rejected = Rejected(line, reason, block.line + number, is_name)
            check_guess(rejected, reading)
            yield Piece(NO_COLUMNS, [(0, rejected)])
            continue
        if run and (run[-1].batch.time is None) != (record.batch.time is None):
            yield from _piece(run)
            run = []
        run.append(record)
    yield from _piece(run)


def _usual(found: dict[str, Any], reading: Reading, fields: Fields) -> dict[str, Any]:
    """The fields of a line by role: whole floats as integers, times in ms if that was said, and
    kinds in our words. Raises RecordError."""
    for end in ("src", "dst", "time"):
        value = found.get(end)
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
            found[end] = int(value)
    if "time" in found:
        if reading.times == "dates" and not isinstance(found["time"], str):
            raise RecordError(f"time: {NOT_A_DATE}")
        found["time"] = in_ms(found["time"], fields.time_unit or "ms")
    if reading.kinds and str(found["kind"]).lower() in reading.kinds:
        found["kind"] = WORDS[reading.kinds[str(found["kind"]).lower()]]
    return found


def _piece(run: list[Record]) -> Iterator[Piece]:
    """Rows that all have a time, or all have none."""
    if not run:
        return
    batches = [record.batch for record in run]
    weights = [batch.weight for batch in batches]
    times = [batch.time for batch in batches if batch.time is not None]
    ends = [record.names or record.batch for record in run]
    src, dst = ([getattr(end, name)[0] for end in ends] for name in ("src", "dst"))
    yield Piece(
        Columns(
            np.concatenate([batch.kind for batch in batches]),
            names_of(src, "src"),
            names_of(dst, "dst"),
            None
            if all(weight is None for weight in weights)
            else np.array([1.0 if weight is None else weight[0] for weight in weights]),
            np.concatenate(times) if times else None,
            checked=True,  # each record, when it was decoded
        )
    )
