"""A batch between the two steps of its application: see store.py."""

from __future__ import annotations

from dataclasses import dataclass

from .backend.values import Located, Plan, Segments


@dataclass(frozen=True)
class Prepared:
    """A batch ready to be committed. `plan` is None where nothing is left to move."""

    segments: Segments  # to be published
    located: Located
    plan: Plan | None
    strategy: str
    density: float  # of the store before the batch
    expansions: int
    rebuilt: bool  # by a global merge: `segments` already holds the batch
    seconds: float
