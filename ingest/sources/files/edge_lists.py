"""Edge lists on disk: SNAP text, csv, JSON lines, Matrix Market and `.npz`; all but the last also
as .gz.

Memory is bounded: text is read in blocks of 1 MiB, an `.npz` as the arrays it holds.

    text, .tsv    lines of fields between blanks; "#" and "%" start a comment line
    .csv          fields between commas (or `delimiter`), quotes allowed
    .jsonl        an object of JSON a line (also .ndjson), its fields named by `JsonFields`
    .mtx          Matrix Market, coordinate; ids from 1; a symmetric entry stands for both edges
    .npz          arrays `src`, `dst`, and where there `w` or `weight`, `t` or `time`, `kind`
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from lpma.batch import MAX_VERTEX

from ...errors import RecordError, SourceError
from ...formats.json import JsonFields
from ...formats.names import names_of
from ...types import Ids
from .edge_layout import SAMPLE_LINES, ColumnNames, Layout, Noticed, find_layout
from .edge_text import Array, Value, parse, validated
from .json_lines import read_json_lines
from .kinds import no_edge_list

BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 16
HEAD_BYTES = 1 << 13  # read to detect what a file is

FORMATS = ("text", "csv", "jsonl", "mtx", "npz")
_FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".mtx": "mtx", ".npz": "npz"}


def format_of(path: Path) -> str:
    """The one of FORMATS that the name says."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return _FORMATS.get(suffixes[-1] if suffixes else "", "text")


def read_edge_list(
    path: Path,
    format: str,
    columns: ColumnNames = None,
    delimiter: str | None = None,
    mirror: bool = True,
    ids: Ids = "dense",
    notice: Callable[[Noticed], object] = lambda noticed: None,
    json: JsonFields | None = None,
) -> Iterator[Value]:
    """The operations of the file in order, as runs of good ones and single bad lines.

    `mirror`: whether a symmetric Matrix Market entry gives both edges; False for an undirected
    graph, to which the pair would be one edge twice. `ids`: "mapped" if src and dst are names;
    those in the columns are then as in `Names`. `notice` gets what was noticed, before
    the first operation. `json`: the fields of JSON lines. Raises SourceError."""
    if columns is not None and format not in ("text", "csv"):
        raise SourceError(f"{path}: columns apply to text and csv files, but this is {format}")
    try:
        if format == "npz":
            yield from _read_npz(path, ids, notice)
            return
        with open(path, "rb") as raw:
            zipped = path.suffix.lower() == ".gz"
            file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if zipped else raw
            if format == "jsonl":
                objects = map(_byte_lines, _raw_blocks(file, path, "{"))
                yield from read_json_lines(objects, json or JsonFields(), ids, notice)
                return
            blocks = map(_lines, _raw_blocks(file, path))
            if format == "mtx":
                yield from _read_matrix(blocks, path, mirror)
            else:
                yield from _read_text(blocks, path, format, columns, delimiter, ids, notice)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error


def _raw_blocks(file: BinaryIO, path: Path, begins: str | None = None) -> Iterator[bytes]:
    """Whole lines, many at a time. `begins`: what such a file always begins with."""
    rest = b""
    known = False
    while block := file.read(BLOCK_BYTES):
        known = known or (begins is not None and block.lstrip().startswith(begins.encode()))
        if not known and (what := no_edge_list(block[:HEAD_BYTES])):
            raise SourceError(f"{path}: {what}")
        known = True
        block = rest + block
        end = block.rfind(b"\n") + 1
        block, rest = block[:end], block[end:]
        if len(rest) > MAX_LINE_BYTES:
            raise SourceError(f"{path}: a line passes {MAX_LINE_BYTES} bytes: not an edge list")
        yield block
    if rest:
        yield rest


def _lines(block: bytes) -> list[str]:
    """Without blank ones."""
    text = block.decode("utf-8-sig", errors="replace")
    return [line for line in text.split("\n") if line.strip()]


def _byte_lines(block: bytes) -> list[bytes]:
    return [line for line in block.split(b"\n") if line.strip()]


def _without_comments(lines: list[str]) -> list[str]:
    return [line for line in lines if line.lstrip()[0] not in "#%"]


def _read_text(
    blocks: Iterator[list[str]],
    path: Path,
    format: str,
    columns: ColumnNames,
    delimiter: str | None,
    ids: Ids,
    notice: Callable[[Noticed], object],
) -> Iterator[Value]:
    layout = None
    for block in blocks:
        lines = _without_comments(block)
        if not lines:
            continue
        if layout is None:
            comma = delimiter or ("," if format == "csv" else None)
            layout, header, noticed = find_layout(lines[:SAMPLE_LINES], path, columns, comma, ids)
            notice(noticed)
            lines = lines[header:]
        yield from parse(lines, layout)


def _read_matrix(blocks: Iterator[list[str]], path: Path, mirror: bool) -> Iterator[Value]:
    first = next(blocks, [])
    head = first[0].lower().split() if first else []
    if len(head) != 5 or head[:3] != ["%%matrixmarket", "matrix", "coordinate"]:
        raise SourceError(f"{path}: expected '%%MatrixMarket matrix coordinate …' in line 1")
    field, symmetry = head[3:]
    if field not in ("pattern", "integer", "real") or symmetry not in ("general", "symmetric"):
        raise SourceError(f"{path}: {field} {symmetry} matrices cannot be read as a graph")
    lines = _without_comments(first)
    size = lines[0].split() if lines else []
    if len(size) != 3 or not all(number.isdecimal() for number in size):
        raise SourceError(f"{path}: expected 'rows columns entries' after the comments")
    places = {"src": 0, "dst": 1} | ({} if field == "pattern" else {"weight": 2})
    both = mirror and symmetry == "symmetric"
    limit = min(MAX_VERTEX, max(int(size[0]), int(size[1])) - 1)
    layout = Layout(places, None, base=1, limit=limit, mirror=both)
    entries = len(lines) - 1
    yield from parse(lines[1:], layout)
    for block in blocks:
        lines = _without_comments(block)
        entries += len(lines)
        yield from parse(lines, layout)
    if entries != int(size[2]):
        raise SourceError(
            f"{path}: {entries} entries, but {size[2]} promised: cut short or damaged"
        )


def _read_npz(path: Path, ids: Ids, notice: Callable[[Noticed], object]) -> Iterator[Value]:
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.startswith(b"PK"):
        raise SourceError(f"{path}: not an .npz: {no_edge_list(head) or 'it is text'}")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except ValueError as error:
        raise SourceError(f"{path}: not an .npz of plain arrays: {error}") from error
    names = {"weight": ("w", "weight"), "time": ("t", "time"), "kind": ("kind",)}
    if "src" not in found or "dst" not in found:
        raise SourceError(f"{path}: needs arrays src and dst, holds {', '.join(found) or 'none'}")
    table = {"src": found["src"], "dst": found["dst"]}
    for field, spellings in names.items():
        for name in spellings:
            if name in found:
                table[field] = found[name]
    known = {*table, *(name for spellings in names.values() for name in spellings)}
    notice(Noticed(tuple(name for name in found if name not in known)))
    for field, column in table.items():
        text = ids == "mapped" and field in ("src", "dst")
        kinds = "iuf" if field == "weight" else "iuU" if text else "iu"
        if column.shape != table["src"].shape or column.ndim != 1 or column.dtype.kind not in kinds:
            raise SourceError(f"{path}: {field} is {column.dtype}{list(column.shape)}")
    if ids == "mapped":
        try:
            table |= {end: names_of(table[end], end) for end in ("src", "dst")}
        except RecordError as error:
            raise SourceError(f"{path}: {error}") from None
    limit = None if ids == "mapped" else MAX_VERTEX
    yield from validated(table, limit, lambda row: str(_row_of(table, row)))


def _row_of(table: Mapping[str, Array], row: int) -> dict[str, Any]:
    return {field: column[row].item() for field, column in table.items()}
