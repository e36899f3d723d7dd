"""CuPy's kernels that algorithms come to need and that the lists of what is compiled beforehand do
not have (lpma/backend/cuda/launch/warm_up.py): those that a first call would wait for.

    python -m tests.support.first_kernels

prints a line for each: the algorithm, the kernel's name, and its types. Whatever CuPy compiles or
takes from its cache passes through one function, which is listened to: first while everything in
the lists is called, and then while the algorithms run.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import algorithms
import lpma
from tests.support.graph_forms import clustered

OURS = "// headers: "  # how sources of ours begin
_NAME = re.compile(r"__global__ void (\w+)")
_TYPE = re.compile(r"typedef ([\w ]+);")


def main() -> None:
    for name, algorithm, types in missing():
        print(f"{algorithm}: {name} {types}")


def missing() -> list[tuple[str, str, str]]:
    """(kernel, the first algorithm that needs it, the kernel's types), in the order in which they
    are needed."""
    warm = importlib.import_module("lpma.backend.cuda.launch.warm_up")
    s, pairs = _graph()
    seen, found = set[str](), []
    with _listening() as sources:
        for name in warm.LISTS:
            for call in importlib.import_module(name).calls():
                call()
        seen.update(sources)
        for algorithm, run in _runs(s, pairs):
            sources.clear()
            run()
            for source in sources:
                if source not in seen and not source.startswith(OURS):
                    seen.add(source)
                    kernel = (_NAME.findall(source) or [source[:200]])[-1]
                    found.append((kernel, algorithm, ", ".join(_TYPE.findall(source))))
    return found


def _graph() -> tuple[lpma.Snapshot, Any]:
    """A directed snapshot with weights, and pairs of its vertices, on the device."""
    cupy = importlib.import_module("cupy")
    _, src, dst = clustered(7)
    graph = lpma.Graph(device="cuda")
    graph.insert(src, dst, np.ones(len(src)), np.arange(len(src)))
    return graph.snapshot(), cupy.asarray(np.stack((src, dst)).astype(np.int64))


def _runs(s: lpma.Snapshot, pairs: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Algorithms, each on views made before or by itself."""
    u, v = pairs
    host = u.get(), v.get()
    yield "bfs", lambda: algorithms.bfs(s, 77)
    yield "strong components", lambda: algorithms.strongly_connected_components(s)
    yield "PageRank", lambda: algorithms.pagerank(s)
    yield "PageRank, weighted", lambda: algorithms.pagerank(s, weighted=True)
    yield "PageRank, personalised", lambda: algorithms.pagerank(s, personalization={77: 1.0})
    yield "shortest paths", lambda: algorithms.shortest_path_tree(s, 77)
    yield "common neighbours", lambda: algorithms.common_neighbors(s, *host)
    yield "Jaccard", lambda: algorithms.jaccard(s, *host)
    yield "Jaccard of pairs on the device", lambda: algorithms.jaccard(s, u, v)
    yield "similar", lambda: algorithms.similar(s, 77, 5)
    yield "similar, unlinked", lambda: algorithms.similar(s, 77, 5, unlinked=True)
    yield "components", lambda: algorithms.connected_components(s)
    yield "core numbers", lambda: algorithms.core_numbers(s)


class _listening:
    """A context that lists the sources which CuPy loads meanwhile."""

    _compiler: Any

    def __enter__(self) -> list[str]:
        self._compiler = importlib.import_module("cupy.cuda.compiler")
        self._inner = self._compiler._compile_module_with_cache
        sources: list[str] = []

        def compile_module(source: str, *args: Any, **options: Any) -> Any:
            sources.append(source)
            return self._inner(source, *args, **options)

        self._compiler._compile_module_with_cache = compile_module
        return sources

    def __exit__(self, *_: Any) -> None:
        self._compiler._compile_module_with_cache = self._inner


if __name__ == "__main__":
    main()
