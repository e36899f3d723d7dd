"""`docs/reference/format.md`: its examples are decoded, and mean what stands behind their arrows;
those of what a pipeline writes are its bytes; its limits are those of the code."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import ingest
from ingest.feed.content import digest_of
from ingest.formats import changes, records, replies, results
from ingest.formats import msgpack as values
from ingest.formats.debezium.changes import ChangeReader, Skipped
from ingest.formats.kinds import WORDS
from ingest.types import Record, Reply
from lpma import Edges, Neighbors
from lpma.batch.columns import OF_EDGES, Kind
from lpma.sharding import hash_names

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "format.md"
JSON = ingest.Fields(weight="weight", time="time", kind="kind")
MAPS = ingest.Fields("user", "item", "stars", time="at", kind="op", time_unit="s")
FOLLOWS = ingest.Fields("follower", "followee", "strength", time="source.ts_ms")
TABLE = ChangeReader(ingest.Debezium(FOLLOWS, on_repeat="last"), names=False)


def examples() -> list[tuple[str, str, str]]:
    """(language, value, meaning) of each line of the page's blocks; blocks of text are grammar."""
    found = []
    blocks = re.findall(r"(?ms)^```(\S[^\n]*)\n(.*?)^```$", PAGE.read_text("utf-8"))
    for language, block in blocks:
        if language == "text":
            continue
        for line in block.splitlines():
            value, arrow, meaning = line.partition("→")
            assert arrow, line
            found.append((language, value.strip(), meaning.strip()))
    return found


EXAMPLES = examples()


def bytes_of(language: str, value: str) -> bytes:
    if language in OF_TEXT:
        return value.encode()
    return bytes.fromhex(value) if language == "bytes" else msgpack.packb(ast.literal_eval(value))


def record_said(record: Record) -> str:
    for query in record.queries:
        words: list[Any] = ["query", query.id, WORDS[query.kind], query.src]
        words += [query.dst] if query.kind in (Kind.EDGE, Kind.HOPS) else []
        words += [] if query.after is None else ["after", query.after]
        words += [] if query.reply is None else ["to", query.reply]
        words += [] if query.deadline is None else ["until", query.deadline]
        return " ".join(map(str, words))
    batch, ends = record.batch, record.names or record.batch
    rows = []
    for i, kind in enumerate(map(Kind, batch.kind.tolist())):
        vertices = [ends.src[i], ends.dst[i]] if kind in OF_EDGES else [ends.src[i]]
        vertices = [] if kind is Kind.EXPIRE else vertices
        words = [WORDS[kind], *map(name_said, vertices)]
        words += [] if batch.weight is None else ["weight", batch.weight[i]]
        words += [] if batch.time is None else ["time", batch.time[i]]
        words += [] if record.producer is None else ["from", record.producer, record.seq]
        rows.append(" ".join(map(str, words)))
    return ", ".join(rows)


def name_said(name: Any) -> str:
    return json.dumps(name) if isinstance(name, str) else str(name)


def reply_said(reply: Reply) -> str:
    if reply.error is not None:
        return f"{reply.id} error {reply.error} {reply.retry_after_ms}"
    words: list[Any] = [reply.id, WORDS[reply.kind]]
    if isinstance(reply.answer, Neighbors):
        words += map(name_said, reply.answer.ids)
    elif isinstance(reply.answer, Edges):
        words += [reply.answer.found[0]]
        words += [] if reply.answer.weights is None else ["weight", reply.answer.weights[0]]
    else:
        assert isinstance(reply.answer, np.ndarray)
        words += [reply.answer[0]]
    return " ".join(map(str, [*words, *(["more"] if reply.more else [])]))


def letter_said(letter: ingest.DeadLetter) -> str:
    return f"{letter.topic}/{letter.partition} {letter.offset} of {letter.size} bytes"


def result_said(result: ingest.Result) -> str:
    place = f"{result.version} {result.part}/{result.parts}"
    alert = "" if result.alert is None else f"{result.alert}: "
    rows = [f"{result.old} {result.new}"]
    if result.vertex is not None:
        columns = (column.tolist() for column in (result.vertex, result.old, result.new))
        rows = [f"{name_said(v)} {old} {new}" for v, old, new in zip(*columns, strict=True)]
    return f"{place} {alert}{result.figure} {', '.join(rows)}"


def changes_said(part: ingest.EdgeChanges) -> str:
    said = []
    columns = [part.src, part.dst, *(c for c in (part.weight, part.time) if c is not None)]
    for change, *ends in zip(part.change.tolist(), *columns, strict=True):
        said.append(" ".join([changes.WORDS[change], *map(name_said, ends)]))
    for at, name in enumerate([] if part.names is None else part.names.tolist(), part.first):
        said.append(f"{at} is {name_said(name)}")
    place = f"{part.version} {part.part}/{part.parts}"
    return f"{place} {part.graph}: {', '.join(said)}".strip()


def of_record(names: bool = False) -> Callable[[bytes], str]:
    return lambda data: record_said(ingest.decode_record(data, names=names))


def change_said(data: bytes) -> str:
    event = TABLE.event(data, b"")
    return "skipped" if isinstance(event, Skipped) else record_said(TABLE.record(event))


def digest_said(data: bytes) -> str:
    edges = ast.literal_eval(data.decode())
    return f"{digest_of(np.array([(u << 32) + v for u, v in edges], np.uint64)):016x}"


def avro_said(data: bytes) -> str:
    """What a field of this type with this value becomes; text stands for bytes of it."""
    import io

    import fastavro

    from ingest.registry.avro import AvroReader, parse

    kind, value = json.loads(data)
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}
    plain = json.loads(json.dumps(schema).replace("logicalType", "ignored"))
    out = io.BytesIO()
    is_text = any(word in json.dumps(kind) for word in ("string", "enum"))
    if isinstance(value, str) and not is_text:
        value = value.encode("latin-1")
    fastavro.schemaless_writer(out, fastavro.parse_schema(plain), {"a": value})
    found = AvroReader(parse(json.dumps(schema)), ["a"]).read(out.getvalue())
    return json.dumps(json.loads(found)["a"])


DECODERS: dict[str, Callable[[bytes], str]] = {
    "msgpack": of_record(),
    "bytes": of_record(),
    "msgpack names": of_record(names=True),
    "json": lambda data: record_said(ingest.decode_record(data, fields=JSON)),
    "msgpack fields": lambda data: record_said(ingest.decode_record(data, fields=MAPS)),
    "avro": avro_said,
    "debezium": change_said,
    "reply": lambda data: reply_said(ingest.decode_reply(data)),
    "owner": lambda data: str(hash_names([ast.literal_eval(data.decode())])[0]),
    "result": lambda data: result_said(ingest.decode_result(data)),
    "result line": lambda data: result_said(results.decode_result_line(data)),
    "changes": lambda data: changes_said(ingest.decode_changes(data)),
    "changes line": lambda data: changes_said(ingest.decode_changes(data)),
    "digest": digest_said,
    "dead-letter": lambda data: letter_said(ingest.decode_dead_letter(data)),
}
# What writes again what was read.
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "reply": lambda data: replies.encode_reply(ingest.decode_reply(data)),
    "result": lambda data: results.encode_result(ingest.decode_result(data)),
    "changes": lambda data: changes.encode_changes(ingest.decode_changes(data)),
    "dead-letter": lambda data: replies.encode_dead_letter(ingest.decode_dead_letter(data)),
}
OF_TEXT = ("json", "owner", "result line", "changes line", "avro", "debezium", "digest")


@pytest.mark.parametrize("language, value, meaning", EXAMPLES, ids=[e[1][:60] for e in EXAMPLES])
def test_an_example_means_what_the_page_says(language: str, value: str, meaning: str) -> None:
    if language == "avro":
        pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")
    data = bytes_of(language, value)
    try:
        found = DECODERS[language](data)
    except ingest.RecordError as error:
        found = error.kind
    assert found == meaning


def line_of(part: ingest.EdgeChanges, line: Any) -> bytes:
    of_rows = isinstance(line.get("change"), str)
    return changes.changes_row(part) if of_rows else changes.changes_line(part)


WRITTEN = [(how, value) for how, value, meaning in EXAMPLES
           if how in ENCODERS and meaning != "invalid"]  # fmt: skip


@pytest.mark.parametrize("language, value", WRITTEN, ids=[value[:60] for _, value in WRITTEN])
def test_an_example_is_what_a_pipeline_writes(language: str, value: str) -> None:
    data = bytes_of(language, value)
    assert ENCODERS[language](data) == data


LINES = [(how, value) for how, value, meaning in EXAMPLES
         if how.endswith(" line") and meaning != "invalid"]  # fmt: skip


@pytest.mark.parametrize("language, value", LINES, ids=[value[:60] for _, value in LINES])
def test_a_line_is_what_a_file_holds(language: str, value: str) -> None:
    line = json.loads(value)
    if language == "result line":
        written = results.result_line(results.decode_result_line(value.encode()))
    else:
        written = line_of(ingest.decode_changes(value.encode()), line)
    assert list(json.loads(written).items()) == list(line.items())


def test_there_are_examples_of_each_form() -> None:
    assert {language for language, _, _ in EXAMPLES} == DECODERS.keys()
    assert {meaning for _, _, meaning in EXAMPLES} >= {"invalid", "malformed", "oversized"}


def test_the_limits_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (.+) \| ([0-9,]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name: int(value.replace(",", "")) for name, value in rows} == {
        "bytes of a record of columns": records.MAX_COLUMNAR_BYTES,
        "bytes of any other record": records.MAX_ROW_BYTES,
        "rows of a record": records.MAX_ROWS,
        "rows of a record with text names": records.MAX_TEXT_ROWS,
        "entries of a map or an array": values.MAX_ENTRIES,
        "bytes of a reply": replies.MAX_REPLY_BYTES,
        "bytes of a record that a dead letter keeps": replies.MAX_KEPT_BYTES,
        "bytes of a result": results.MAX_RESULT_BYTES,
        "rows of a result": results.MAX_RESULT_ROWS,
        "bytes of a part of the edge feed": changes.MAX_CHANGES_BYTES,
        "rows of a part of the edge feed": changes.MAX_CHANGES_ROWS,
    }
