"""What a graph is made with: checked once, kept in its file, the same when it is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from .arguments.convert import MAX_VERTEX
from .arguments.scalars import integer, is_integer, shown
from .errors import BatchError
from .pma.strategy import STRATEGIES

WEIGHTS = ("float32", "float64", None)
GLOBAL_MERGES = ("auto", "never")
_IN_FILES = {"weight_dtype": "weight"}  # what files call an option, where that differs
SEGMENT_SIZES = tuple(1 << i for i in range(1, 11))


@dataclass(frozen=True)
class Options:
    """Valid options. `Graph` says what each means; only `checked` makes them."""

    directed: bool
    predecessors: bool
    weight_dtype: str | None
    strategy: str
    segment_size: int
    times: bool
    global_merge: str
    names: bool = False
    left: int | None = None

    @staticmethod
    def checked(**given: Any) -> Options:
        """Options as a caller or a file gives them. Raises BatchError, and TypeError."""
        asked = Options(**given)
        _refuse_contents(asked.directed)
        for name in ("predecessors", "times", "names"):
            _one_of(name, getattr(asked, name), (True, False))
        _one_of("weight_dtype", asked.weight_dtype, WEIGHTS)
        _one_of("strategy", asked.strategy, STRATEGIES)
        _one_of("global_merge", asked.global_merge, GLOBAL_MERGES)
        size: Any = asked.segment_size
        if not is_integer(size) or size not in SEGMENT_SIZES:
            raise BatchError(f"segment_size: a power of two from 2 to 1024, not {shown(size)}")
        return Options(
            directed=bool(asked.directed),
            predecessors=bool(asked.directed and asked.predecessors),
            weight_dtype=None if asked.weight_dtype is None else np.dtype(asked.weight_dtype).name,
            strategy=asked.strategy,
            segment_size=int(size),
            times=bool(asked.times),
            global_merge=asked.global_merge,
            names=bool(asked.names),
            left=None if asked.left is None else integer(asked.left, "left", 0, MAX_VERTEX + 1),
        )

    @staticmethod
    def of_header(header: Mapping[str, Any]) -> Options:
        """The options in a file's header. Raises as `checked` does, and KeyError."""
        named = header.get("names") is True  # once a digest, of names in a file of their own
        known = [field.name for field in fields(Options) if field.name not in ("names", "left")]
        options = {x: header[_IN_FILES.get(x, x)] for x in known}
        return Options.checked(**options, names=named, left=header.get("left"))

    def header(self) -> dict[str, Any]:
        """These options as entries of a file's header."""
        absent = {"names": self.names is False, "left": self.left is None}
        return {_IN_FILES.get(x, x): its for x, its in asdict(self).items() if not absent.get(x)}

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The type of the weights; None: an edge is present or not."""
        return None if self.weight_dtype is None else np.dtype(self.weight_dtype)


def _refuse_contents(directed: Any) -> None:
    """The first argument is whether the graph is directed: edges mistaken for it would be lost."""
    if isinstance(directed, bool | np.bool_):
        return
    if isinstance(directed, str | os.PathLike):
        raise BatchError(
            f"directed: True or False, not {shown(directed)}: lpma.Graph.load reads a file"
        )
    raise BatchError(
        f"directed: True or False, not a {type(directed).__name__}: a graph is made empty and "
        f"filled by `insert`, or made of what there is: {_maker(directed)}"
    )


_MAKERS = {
    "networkx": "lpma.from_networkx(G)",
    "scipy": "lpma.from_scipy(A)",
    "cupyx": "lpma.from_scipy(A)",
    "igraph": "lpma.from_igraph(G)",
    "torch": "lpma.from_edge_index(edge_index)",
}


def _maker(contents: Any) -> str:
    """The call that makes a graph of these contents, as far as their type tells."""
    library = type(contents).__module__.partition(".")[0]
    if library in _MAKERS:
        return _MAKERS[library]
    if library == "pandas" or hasattr(contents, "__arrow_c_stream__"):
        return "lpma.from_dataframe(df, source=…, target=…)"
    if getattr(contents, "ndim", 0) == 2 and contents.shape[0] == 2 and hasattr(contents, "dtype"):
        return "lpma.from_edge_index(edge_index)"
    return "lpma.from_edges(src, dst)"


def _one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    plain = isinstance(value, str | bool | np.bool_ | np.dtype | None)
    if not plain or value not in known:
        raise BatchError(f"{name}: one of {', '.join(map(repr, known))}, not {shown(value)}")
