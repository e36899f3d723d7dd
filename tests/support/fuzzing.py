"""Bytes that no producer meant: mutations of every form of record, by seed, over the processors.

A mutated record is either refused with RecordError or valid; and one that is valid, encoded again,
decodes to what it was. A failure names its bytes.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import msgpack
import numpy as np

import ingest
from ingest import Fields, RecordError, Reply
from ingest.formats.encode import encode_record
from ingest.formats.results import decode_result_line, result_line
from ingest.types import Record
from lpma import Edges, Kind, Neighbors

CHUNK = 20_000  # mutations of one seed
JSON = Fields("user", "item", "weight", "at", "what", default_weight=2.0)
TOKENS = [
    b"\x80", b"\x90", b"\xc0", b"\xc1", b"\xc3", b"\xc4\xff", b"\xcb\x7f\xf8\0\0\0\0\0\0", b"\xdf",
    b"\xcf" + b"\xff" * 8, b"\xd3\x80" + b"\0" * 7, b"\xdd\xff\xff\xff\xff", b"\xff" * 4, b"\0" * 8,
    b"\xa3src", b"\xa4rows", b"[", b"]", b"{", b"}", b'"', b"\\", b"\\ud800", b"NaN", b"-Infinity",
    b"1e999", b"true", b"null", b"9" * 30, b'"user":', b",", b"[" * 40, b"\xef\xbb\xbf",
]  # fmt: skip


class Form(NamedTuple):
    """Decode, encode again, and all that two equal values agree in."""

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    again: Callable[[bytes], Any]
    content: Callable[[Any], Any]


def record_content(record: Record) -> Any:
    batch, ends = record.batch, record.names or record.batch
    columns = (batch.kind, ends.src, ends.dst, batch.weight, batch.time)
    lists = [None if column is None else column.tolist() for column in columns]
    return repr((record.producer, record.seq, record.queries, lists))


def reply_content(reply: Reply) -> Any:
    head = (reply.id, reply.kind, reply.version, reply.time, reply.error, reply.message)
    answer = reply.answer
    if not isinstance(answer, Edges | Neighbors):
        return repr((head, answer))
    return repr((head, [None if c is None else c.tolist() for c in vars(answer).values()]))


def _dense(data: bytes) -> Record:
    return ingest.decode_record(data)


def _named(data: bytes) -> Record:
    return ingest.decode_record(data, names=True)


def _json(data: bytes) -> Record:
    return ingest.decode_record(data, fields=JSON)


def _named_json(data: bytes) -> Record:
    return ingest.decode_record(data, names=True, fields=JSON)


def result_content(result: ingest.Result) -> Any:
    columns = (result.vertex, result.old, result.new)
    plain = (None if column is None else np.asarray(column).tolist() for column in columns)
    return (*result.place, result.parts, result.run, result.time, result.figure, result.alert,
            *plain)  # fmt: skip


FORMS = {
    "dense": Form(_dense, encode_record, _dense, record_content),
    "named": Form(_named, encode_record, _named, record_content),
    "json": Form(_json, encode_record, _dense, record_content),
    "named json": Form(_named_json, encode_record, _named, record_content),
    "reply": Form(
        ingest.decode_reply, ingest.formats.replies.encode_reply, ingest.decode_reply, reply_content
    ),
    "letter": Form(
        ingest.decode_dead_letter,
        ingest.formats.replies.encode_dead_letter,
        ingest.decode_dead_letter,
        repr,
    ),
    "result": Form(
        ingest.decode_result,
        ingest.formats.results.encode_result,
        ingest.decode_result,
        result_content,
    ),
    "result line": Form(decode_result_line, result_line, decode_result_line, result_content),
}


def results() -> list[ingest.Result]:
    """Results of every form."""
    found = [ingest.Result("5f0c", 7, 1, 3, -9, "triangles", None, 3, 2**40, "triangles > 5")]
    for names in (
        np.array([1, 5], np.uint32),
        np.array([-4, "käse"], object),
        np.array([2**63, 7], np.uint64),
    ):
        old, new = np.array([0, 4], np.int32), np.array([1, 3], np.int32)
        found.append(ingest.Result("5f0c", 7, 0, 3, 9, "core", names, old, new))
    return found


def replies() -> list[Reply]:
    ids = np.array([1, 5], np.uint32)
    weight, time = np.array([1, 2.5], np.float32), np.array([7, 8], np.int64)
    one = Edges(np.array([True]), weight[:1], time[:1])
    rows = np.array([0, 2], np.int64)
    names = np.array([2**63, -4, "käse"], object)
    answers: list[tuple[Kind, Any]] = [
        (Kind.EDGE, one),
        (Kind.EDGE, Edges(np.array([False]), None, None)),
        (Kind.SUCCESSORS, Neighbors(rows, ids, weight, time)),
        (Kind.PREDECESSORS, Neighbors(rows, ids, weight.astype(np.float64), None)),
        (Kind.HOPS, Neighbors(np.array([0, 0]), ids[:0])),
        (Kind.SUCCESSORS, Neighbors(rows, np.array([3, 2**64 - 1], np.uint64), weight, time)),
        (Kind.HOPS, Neighbors(rows, np.array([-(2**63), 4], np.int64))),
        (Kind.HOPS, Neighbors(np.array([0, 3]), names)),
        (Kind.DEGREE, np.array([3], np.int64)),
        (Kind.VERTEX, np.array([False])),
    ]
    return [Reply("id", kind, 4, 10**12, answer) for kind, answer in answers]


def corpus() -> list[tuple[str, bytes]]:
    """Good records of every form."""
    columns: Any = [1.0, 2.5, -1.0], [7, 8, 9], [0, 1, 2]
    updates, row, query = ingest.encode_updates, ingest.encode_row, ingest.encode_query
    named: Any = {"names": True}
    found: list[tuple[str, bytes]] = [
        ("dense", updates([1, 2, 3], [4, 5, 6], *columns, producer="p", seq=3)),
        ("dense", updates([1, 2], [4, 5])),
        ("dense", row(1, 2, 0.5, 99, Kind.DELETE, producer="p", seq=3)),
        ("dense", updates([1, 2], [4, 5], [0.5, -1.0], None, [11, 0])),
        ("dense", row(1, 2, 0.5, 99, Kind.SET)),
        ("dense", row(7, kind=Kind.REMOVE_VERTEX)),
        ("dense", msgpack.packb([1, 2, 0.5, 99])),
        ("dense", query("q", Kind.HOPS, 5, steps=2, reply="replies", deadline=10**12)),
        ("dense", query("q", Kind.EDGE, 5, 2**32 - 2)),
        ("named", updates([1, 2, 2**64 - 1], [4, 5, 6], *columns, **named)),
        ("named", updates([1, -(2**63), 3], [4, 5, 6], **named)),
        ("named", updates(["a", "bö", "c" * 64], [-1, "5", 5], *columns, **named)),
        ("named", row("alice", -5, 0.5, 99, **named)),
        ("named", msgpack.packb(["alice", 2**64 - 1, None, 4])),
        ("named", query("q", Kind.EDGE, "alice", 2**40, **named)),
        ("json", b'{"user": 1, "item": 2, "weight": 0.5, "at": 99, "what": "delete"}'),
        ("json", b'{"user": 1, "item": 2, "more": {"a": [1, 2, "\\"x"], "b": null}}\n'),
        ("named json", '{"user": "käse\\u00e9", "item": -12345678901234, "at": null}'.encode()),
        ("named json", b'{"what": "add_vertex", "user": "\\ud83d\\ude00"}'),
        (
            "letter",
            ingest.formats.replies.encode_dead_letter(
                ingest.DeadLetter("t", 3, 9, "why", 9, b"x" * 9)
            ),
        ),
    ]
    for result in results():
        found += [
            ("result", ingest.formats.results.encode_result(result)),
            ("result line", result_line(result)),
        ]
    refused = Reply("id", Kind.HOPS, 1, 2, None, "hops", "fewer")
    return found + [
        ("reply", ingest.formats.replies.encode_reply(reply)) for reply in [*replies(), refused]
    ]


def mutated(data: bytes, others: list[tuple[str, bytes]], rng: random.Random) -> bytes:
    """Bytes changed, inserted, dropped, repeated, taken from another record, or cut off."""
    out = bytearray(data)
    for _ in range(1 + int(rng.random() * 3)):
        at = int(rng.random() * (len(out) + 1))
        what = int(rng.random() * 8)
        if what < 2 and at < len(out):
            out[at] = int(rng.random() * 256)
        elif what < 4 and at < len(out):
            out[at] ^= 1 << int(rng.random() * 8)
        elif what == 4:
            out[at:at] = TOKENS[int(rng.random() * len(TOKENS))]
        elif what == 5:
            del out[at : at + 1 + int(rng.random() * 3)]
        elif what == 6:
            other = others[int(rng.random() * len(others))][1]
            start = int(rng.random() * len(other))
            out[at : at + int(rng.random() * 4)] = other[start : start + int(rng.random() * 20)]
        elif rng.random() < 0.1:
            del out[at:]
        else:
            out[at:at] = out[at : at + 1 + int(rng.random() * 20)]
    return bytes(out)


def check(form: Form, data: bytes) -> bool:
    """Whether `data` is valid. Anything but RecordError, and any difference, fails."""
    try:
        value = form.decode(data)
    except RecordError:
        return False
    assert form.content(form.again(form.encode(value))) == form.content(value)
    return True


def run(seed: int) -> tuple[int, int]:
    """One chunk of mutations; how many were valid, and the process's memory at its most, in kB."""
    rng = random.Random(seed)
    samples = corpus()
    valid = 0
    for _ in range(CHUNK):
        name, sample = samples[int(rng.random() * len(samples))]
        data = mutated(sample, samples, rng)
        try:
            valid += check(FORMS[name], data)
        except BaseException as error:
            error.add_note(f"seed {seed}, {name}: bytes.fromhex({data.hex()!r})")
            raise
    return valid, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run_many(mutations: int) -> tuple[int, int, list[int]]:
    """Mutations, valid ones, and the memory after each chunk, over two processes."""
    seeds = range(-(-mutations // CHUNK))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        results = list(pool.map(run, seeds))
    return len(seeds) * CHUNK, sum(valid for valid, _ in results), [memory for _, memory in results]
