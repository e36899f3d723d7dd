"""What leaves a pipeline in parts, a few for each version: results, and the edge feed. How a
part is written and read; places (`sinks.py`) and runs (`publisher.py`) are the same for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .. import types
from ..formats import changes as feed
from ..formats import results
from .changes import within


class Part(Protocol):
    """A part of what leaves with one version of the graph."""

    @property
    def run(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def place(self) -> tuple[int, int]: ...
    @property
    def rows(self) -> int: ...
    @property
    def pieces(self) -> int: ...
    @property
    def alert(self) -> str | None: ...


class Form(NamedTuple):
    """How parts are written and read. within: all parts of a version, cut to so many bytes."""

    what: str  # they are, in messages and as the default name of a topic
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    line: Callable[[Any], bytes]
    decode_line: Callable[[bytes], Any]
    begins_line: Callable[[bytes], bool]
    within: Callable[[Any, int], list[Any]]
    max_bytes: int
    max_line_bytes: int


RESULTS = Form(
    types.RESULTS, results.encode_result, results.decode_result, results.result_line,
    results.decode_result_line, results.begins_result_line, within, results.MAX_RESULT_BYTES,
    results.MAX_LINE_BYTES,
)  # fmt: skip
CHANGES = Form(
    types.CHANGES, feed.encode_changes, feed.decode_changes, feed.changes_line,
    feed.decode_changes_line, feed.begins_changes_line, feed.within, feed.MAX_CHANGES_BYTES,
    feed.MAX_CHANGES_LINE_BYTES,
)  # fmt: skip
CHANGES_IN_ROWS = CHANGES._replace(encode=feed.changes_row, line=feed.changes_row)
