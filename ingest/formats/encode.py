"""Producing records of the stream. `docs/reference/format.md` is the specification.

Whatever is packed is decoded once, so that no producer writes what no consumer takes.
"""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns, Kind
from lpma.errors import BatchError

from ..arguments import by_name
from ..errors import RecordError
from ..types import Ids, Name, Record
from .kinds import WORDS
from .names import name_fields, names_of
from .records import MAX_ROWS, decode_record


def encode_updates(
    src: Any,
    dst: Any,
    weight: npt.ArrayLike | None = None,
    time: npt.ArrayLike | None = None,
    kind: npt.ArrayLike | None = None,
    *,
    producer: str | None = None,
    seq: int | None = None,
    names: bool = False,
    ids: Ids | None = None,
) -> bytes:
    """A columnar record, the fast road: some thousands of operations a record.

    src, dst: vertex ids; with names=True any integers of 64 bits, text, or a mixture. weight:
    float32 or float64, None for 1.0; time: int64, None to be stamped; kind: uint8 `Kind` of
    updates, None for appends. At most 2^20 rows (2^16 with text) and 8 MiB, which 335,000 rows of
    all columns of dense ids always fit. Raises RecordError.

    >>> ingest.decode(ingest.encode_updates([1, 2], [2, 3], time=[10, 20])).time
    array([10, 20])
    """
    names = by_name(names, ids, RecordError)
    named: tuple[Any, ...] = ()
    if names:
        named = names_of(src, "src"), names_of(dst, "dst")
        src, dst = (np.zeros(len(column), np.uint32) for column in named)
    try:
        columns = Columns.validated(0 if kind is None else kind, src, dst, weight, time)
    except BatchError as error:
        hint = "; text names vertices with names=True" if _has_text(src) or _has_text(dst) else ""
        raise RecordError(f"{error}{hint}") from None
    if len(columns) > MAX_ROWS:
        raise RecordError(f"{len(columns)} rows: at most {MAX_ROWS} a record; cut it", "oversized")
    src, dst = named or (columns.src, columns.dst)
    fields = {"rows": len(columns), **name_fields("src", src), **name_fields("dst", dst)}
    if columns.weight is not None:
        fields["weight"] = columns.weight.astype(f"<f{columns.weight.itemsize}").tobytes()
    if columns.time is not None:
        fields["time"] = columns.time.astype("<i8").tobytes()
    if kind is not None:
        fields["kind"] = columns.kind.tobytes()
    return _pack(fields, producer, seq, names)


def _has_text(values: Any) -> bool:
    return np.asarray(values).dtype.kind in "UTO"


def encode_row(
    src: Name | np.integer[Any],
    dst: Name | np.integer[Any] | None = None,
    weight: float | None = None,
    time: int | None = None,
    kind: Kind = Kind.INSERT,
    *,
    producer: str | None = None,
    seq: int | None = None,
    names: bool = False,
    ids: Ids | None = None,
) -> bytes:
    """One update as a small map. `dst` is left out for vertex operations. Raises RecordError.

    >>> ingest.encode_row(1, 2)
    b'\\x83\\xa3src\\x01\\xa3dst\\x02\\xa4kind\\xa6append'
    """
    fields = {"src": src, "dst": dst, "weight": weight, "time": time, "kind": _word(kind)}
    return _pack(fields, producer, seq, by_name(names, ids, RecordError))


def _word(kind: Any) -> str:
    try:
        return WORDS[kind]
    except (KeyError, TypeError):
        raise RecordError(f"kind: {kind!r}: give one of lpma.Kind, as lpma.Kind.DELETE") from None


def encode_expire(before: int, *, producer: str | None = None, seq: int | None = None) -> bytes:
    """The expiry of every edge whose time is less than `before`, in the unit of the edges' times.
    Raises RecordError.

    >>> ingest.encode_expire(7)
    b'\\x82\\xa4time\\x07\\xa4kind\\xa6expire'
    """
    return _pack({"time": before, "kind": WORDS[Kind.EXPIRE]}, producer, seq, False)


def encode_query(
    id: str,
    kind: Kind,
    src: Name | np.integer[Any],
    dst: Name | np.integer[Any] | None = None,
    *,
    steps: int | None = None,
    after: Name | np.integer[Any] | None = None,
    reply: str | None = None,
    deadline: int | None = None,
    producer: str | None = None,
    seq: int | None = None,
    names: bool = False,
    ids: Ids | None = None,
) -> bytes:
    """One query. `dst` is for EDGE, `steps` for HOPS. `after` goes on where a reply with more to
    come ended. `id` comes back in the reply; `reply` names the topic it goes to; `deadline` is in
    ms since 1970. Raises RecordError.

    >>> data = ingest.encode_query("q1", lpma.Kind.EDGE, 1, 2)
    >>> ingest.decode_record(data).queries[0].kind.name
    'EDGE'
    """
    fields: dict[str, Any] = {"query": _word(kind), "id": id, "src": src, "dst": dst}
    fields |= {"steps": steps, "after": after, "reply": reply, "deadline": deadline}
    return _pack(fields, producer, seq, by_name(names, ids, RecordError))


def encode_record(record: Record) -> bytes:
    """`record` again, its updates as columns whatever form they came in. Raises RecordError."""
    if record.queries:
        (query,) = record.queries
        hops, edge = query.kind is Kind.HOPS, query.kind is Kind.EDGE
        return encode_query(
            query.id, query.kind, query.src, query.dst if edge else None,
            steps=int(query.dst) if hops else None, after=query.after, reply=query.reply,
            deadline=query.deadline,
            producer=record.producer, seq=record.seq, names=True,
        )  # fmt: skip
    batch, ends = record.batch, record.names or record.batch
    return encode_updates(
        ends.src, ends.dst, batch.weight, batch.time, batch.kind,
        producer=record.producer, seq=record.seq, names=record.names is not None,
    )  # fmt: skip


def _plain(value: Any) -> int | float:
    """The number in one of NumPy's, which answers and columns are made of."""
    if isinstance(value, np.integer | np.floating):
        plain: int | float = value.item()
        return plain
    raise TypeError(f"can not serialize {type(value).__name__!r} object")


def _pack(fields: dict[str, Any], producer: str | None, seq: int | None, names: bool) -> bytes:
    fields = {**fields, "source": producer, "seq": seq}
    try:
        present = {name: value for name, value in fields.items() if value is not None}
        data: bytes = msgpack.packb(present, default=_plain)
    except (TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"cannot be packed: {error}") from None
    decode_record(data, names=names)
    return data
