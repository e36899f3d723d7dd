"""What a backend may offer beside protocol.py: queries of a batch that is not in the store yet."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from .values import Array, KeyRows, Segments


@runtime_checkable
class AnswersBeside(Protocol):
    """What a backend may also offer: to answer a mixed batch's queries from the store as it was and
    the batch's sorted rows beside it, so that the batch need not be put into the store first."""

    def sort_beside(self, segments: Segments, staged: Any, rows: KeyRows) -> None:
        """Sort key operations. REQUIRES: no row removes a vertex or lets edges expire; no versions.
        [Q1] ENSURES: from now until the next `locate`, `find_edges`, `count_neighbors` and
        `neighbors` take `staged` and limits for these segments, and R2 holds of them. Where rows
        are bad, they may answer anything, or raise BatchError.
        [Q2] ENSURES: nothing is published, and `locate` may be given the same rows."""

    def asked(self, segments: Segments, staged: Any, places: Array) -> tuple[Array, Array, Array]:
        """(src, dst, limits) of the queries in rows `places` of a staged batch, where its kernels
        read them. REQUIRES: `places` are on the host."""
