"""Long answers in pages: what was not sent is kept for a while, and a cursor says where it goes on.

Idea: the whole answer was found at one version, and stays as it was; each page is cut from it. So
all pages of an answer are of one version, whatever the stream does meanwhile, and the same cursor
gives the same page again. What is kept is bounded in bytes and in seconds since it was last read:
the oldest goes first, and its cursors are answered with 410.

    cursor := base64url of 16 random bytes "." the page's first row, in decimals

One vertex may have more neighbours than an answer may have rows. The last page of such an answer
has a cursor, too: behind it the question is asked again, for what comes after the last row, and the
pages go on if the graph is still of that version; else the client is told how to go on (410).

A cursor cannot be guessed, so nobody reads on in another client's answer.

Used by the event loop alone.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma import Kind, Neighbors
from lpma.names import FrozenNames

from ..types import Name
from .answering import Answer, Vertices
from .context import Limits
from .problems import Problem
from .query_codecs import Page

Array = npt.NDArray[Any]

_CURSOR = re.compile(r"([A-Za-z0-9_-]{22})\.([0-9]{1,12})", re.ASCII)


class Rest(NamedTuple):
    """What has to be asked to go on: the vertex, behind which row, and the version it must be
    of."""

    u: Vertices
    after: Name
    version: int


@dataclass(slots=True, eq=False)
class _Kept:
    page: Page  # all rows
    names: FrozenNames | None
    nbytes: int
    used: float
    u: Vertices | None  # the one vertex that has more rows behind these; else None

    def rest(self) -> Rest:
        """REQUIRES: `u`."""
        assert self.u is not None
        assert isinstance(self.page.value, Neighbors)
        last = self.page.value.ids[-1:]
        after = last if self.names is None else self.names.of(last)
        return Rest(self.u, after.tolist()[0], self.page.version)


class Cursors:
    """Cuts answers into pages, and keeps those that have more than one."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: OrderedDict[str, _Kept] = OrderedDict()  # the one read longest ago first
        self.nbytes = 0

    def first(self, answer: Answer, page: Page, u: Vertices) -> Page:
        """The first page of an answer: all of it if it is short, or has a row for each vertex that
        was asked. page: all of it; u: what was asked."""
        is_short = page.rows <= self._limits.page_rows and not answer.more
        if is_short or not isinstance(page.value, Neighbors):
            return _named(page, answer.names)
        id = secrets.token_urlsafe(16)
        return self._cut(id, self._keep(id, page, answer, u), 0)

    def next(self, cursor: object, kind: Kind) -> Page | Rest:
        """The page that a cursor stands for, or what has to be asked for it. Raises Problem 410 if
        it is no longer kept, 422 if it is no cursor of such a query."""
        found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
        if found is None:
            raise Problem(422, "cursor: give the one of an answer's page")
        id, row = found[1], int(found[2])
        self.expire()
        kept = self._kept.get(id)
        if kept is None:
            raise not_kept()
        if kept.page.kind is not kind or row >= kept.page.rows + (kept.u is not None):
            raise Problem(422, "cursor: it is of another query")
        kept.used = time.monotonic()
        self._kept.move_to_end(id)
        return self._cut(id, kept, row) if row < kept.page.rows else kept.rest()

    def expire(self) -> None:
        """Drop what was not read for too long, and the oldest while there is too much."""
        oldest = time.monotonic() - self._limits.kept_s
        while self._kept:
            id, kept = next(iter(self._kept.items()))
            if kept.used > oldest and self.nbytes <= self._limits.kept_bytes:
                break
            del self._kept[id]
            self.nbytes -= kept.nbytes

    def _keep(self, id: str, page: Page, answer: Answer, u: Vertices) -> _Kept:
        assert isinstance(page.value, Neighbors)
        value = page.value
        if isinstance(answer.joint, Neighbors) and len(value.ids) < len(answer.joint.ids):
            # Copied, or a small part would keep the answers to all questions of its group.
            page.value = value = value.with_columns(np.copy)
        columns = (value.indptr, value.ids, value.weights, value.times)
        nbytes = sum(column.nbytes for column in columns if column is not None)
        kept = _Kept(page, answer.names, nbytes, time.monotonic(), u if answer.more else None)
        self._kept[id] = kept
        self.nbytes += nbytes
        self.expire()
        return kept

    def _cut(self, id: str, kept: _Kept, row: int) -> Page:
        """The page that begins with this row of a kept answer."""
        value = kept.page.value
        assert isinstance(value, Neighbors)
        end = min(row + self._limits.page_rows, len(value.ids))
        rows = value.rows(row, end, np.clip(value.indptr, row, end) - row)
        is_last = end == len(value.ids) and kept.u is None
        cursor = None if is_last else f"{id}.{end}"
        return _named(replace(kept.page, value=rows, cursor=cursor), kept.names)


def not_kept() -> Problem:
    return Problem(
        410,
        "cursor: the rest of this answer is no longer kept: ask again, with the last rows that "
        "came as `after` to go on at a newer version",
    )


def _named(page: Page, names: FrozenNames | None) -> Page:
    if names is None or not isinstance(page.value, Neighbors):
        return page
    return replace(page, value=replace(page.value, ids=names.of(page.value.ids)))
