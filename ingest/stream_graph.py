"""What a pipeline needs of a graph: `lpma.Graph` has it, and so have the models that tests use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lpma.batch.columns import Columns
from lpma.pma.counters import Unchanged

from .types import Answer, Image

if TYPE_CHECKING:
    from lpma.engine.answers import Answers


class Directions(Protocol):
    """What must be known of a graph to know which queries it can answer."""

    @property
    def directed(self) -> bool: ...
    @property
    def has_predecessors(self) -> bool: ...


class StreamGraph(Directions, Protocol):
    """What a pipeline needs of a graph; `lpma.Graph` has it.

    `apply` changes nothing if it raises OutOfMemory, unless that is AnswersTooLarge: then the
    updates are applied. Batches have been validated. `image` is a copy of all it holds; see
    checkpointer.Part."""

    @property
    def version(self) -> int: ...
    @property
    def num_edges(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def levels(self) -> int: ...
    @property
    def density(self) -> float: ...
    @property
    def unchanged(self) -> Unchanged: ...
    @property
    def expired(self) -> int: ...
    def apply(self, batch: Columns, /) -> Answers | Sequence[Answer]: ...
    def image(self, old: Any = None, /) -> Image: ...
