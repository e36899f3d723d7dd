"""Which way imports run: between packages, between the floors of a package, and in no circle of
files.

An import counts wherever it stands, inside a function and under TYPE_CHECKING too: two files that
need each other can only be understood together. `from package import name` is an import of the
submodule `name` where there is one, and else of the package's `__init__`. That every import of a
submodule runs the `__init__` of its packages does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from .sources import Source

BELOW = {
    "lpma": {"lpma"},
    "algorithms": {"lpma", "algorithms"},
    "ingest": {"lpma", "algorithms", "ingest"},
}
# Each file or folder of a package stands on a floor and imports from its own or from one below.
FLOORS = {
    "lpma": (
        ("arrays", "errors", "host", "pma", "record", "signals", "time_view"),
        ("cpu", "dependencies"),
        ("arguments", "cuda"),
        ("file", "options", "results", "sharding"),
        ("names",),
        ("batch",),
        ("backend",),
        ("store",),
        ("engine",),
        ("display",),
        ("snapshot",),
        ("graph",),
        ("compilation", "interop"),
    ),
    # Of the road from the source to the graph; these import nothing that stands on no floor. A file
    # of a folder may stand on a floor of its own: what settings are checked with lies below them.
    "ingest": (
        ("arguments", "errors", "events", "timers", "types"),
        ("fields", "formats", "registry.client", "state.retention"),
        ("results.figures", "pipeline.batching"),
        ("pipeline.windows",),
        ("settings",),
        ("sources", "registry"),
        ("state",),
        ("queries", "results", "feed.content", "feed.writer"),
        ("pipeline",),
    ),
}  # fmt: skip
FLOOR = {
    f"{package}.{name}": number
    for package, floors in FLOORS.items()
    for number, names in enumerate(floors)
    for name in names
}


def floor_of(parts: Sequence[str]) -> int | None:
    """The floor of a file, or else of its folder; None: it stands on none."""
    found = FLOOR.get(".".join(parts[:3]))
    return FLOOR.get(".".join(parts[:2])) if found is None else found


def imported(source: Source) -> Iterator[tuple[str, str, int]]:
    """(module, name, line) of every import, by absolute names; the name is empty where a module
    itself is imported."""
    package = source.parts[:-1]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((module, alias.name, node.lineno) for alias in node.names)


def one_way(sources: Iterable[Source]) -> Iterator[str]:
    """ingest → algorithms → lpma, and nothing of the tests or benchmarks."""
    for source in sources:
        room = source.parts[0]
        for module, _, line in imported(source):
            first = module.split(".")[0]
            if first in ("tests", "benchmarks") or (first in BELOW and first not in BELOW[room]):
                yield f"{source.name}:{line}: {room} imports {module}"


def floors(sources: Iterable[Source]) -> Iterator[str]:
    """See FLOORS."""
    for source in sources:
        package = source.parts[0]
        here = floor_of(source.parts)
        if here is None:
            if package == "lpma" and source.parts[1] != "__init__":
                yield f"{source.name}:1: it stands on no floor (FLOORS in {__name__})"
            continue
        for module, name, line in imported(source):
            parts = [*module.split("."), *([name] if name else [])]
            if parts[0] == package:
                there = floor_of(parts)
                if there is None or there > here:
                    yield f"{source.name}:{line}: {'.'.join(parts)} stands above"


def kernels_stay_in_the_backend(sources: Iterable[Source]) -> Iterator[str]:
    """Host logic is written against the protocol: outside lpma/backend nothing of `lpma` imports
    from a backend's own folder."""
    for source in sources:
        if source.parts[0] == "lpma" and source.parts[1] != "backend":
            for module, name, line in imported(source):
                if f"{module}.{name}".startswith(("lpma.backend.numba", "lpma.backend.cuda")):
                    yield f"{source.name}:{line}: {module} is a backend's own"


def circles(sources: Iterable[Source]) -> Iterator[str]:
    """No files import one another in a circle."""
    known = {source.module: source for source in sources}
    graph = {module: set(_ours(source, known)) - {module} for module, source in known.items()}
    for circle in components(graph):
        for module in sorted(circle):
            others = ", ".join(sorted(graph[module] & circle))
            yield f"{known[module].name}:1: in a circle of files: it imports {others}"


def _ours(source: Source, known: dict[str, Source]) -> Iterator[str]:
    for module, name, _ in imported(source):
        if f"{module}.{name}" in known:
            yield f"{module}.{name}"
        elif module in known:
            yield module


def components(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one node (Tarjan's algorithm)."""
    found: list[set[str]] = []
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            component = set()
            while node not in component:
                component.add(stack.pop())
            if len(component) > 1:
                found.append(component)

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return found
