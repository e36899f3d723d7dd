"""Algorithms over snapshots of the graph: one folder each, named after what it computes.

A folder's first file has the public functions, says what the other files do, and names its oracle;
`views` is what they all read a graph as, `options` and `arguments` admit what else a caller gives,
and `arrays` chooses the program for the device where the graph lies.

Names are imported lazily, on first use: importing NetworkX imports `algorithms.networkx.info`, and
must not import Numba.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bfs import bfs
    from .biclique import Biclique, count_all_bicliques, count_bicliques, list_bicliques
    from .clustering import average_clustering, clustering_coefficients, transitivity
    from .components import connected_components
    from .core import core_numbers, k_core
    from .diversity import Diverse, diversity, top_diversity
    from .pagerank import NotConverged, pagerank
    from .sharded import ShardedSnapshot
    from .shortest_paths import PathTree, shortest_path_tree, shortest_paths
    from .similarity import Similar, common_neighbors, jaccard, similar
    from .strong_components import strongly_connected_components
    from .tracker import Tracker
    from .triangles import Support, edge_support, triangle_count, triangles
    from .truss import Truss, k_truss, truss_numbers

__all__ = [
    "Biclique",
    "Diverse",
    "NotConverged",
    "PathTree",
    "ShardedSnapshot",
    "Similar",
    "Support",
    "Tracker",
    "Truss",
    "average_clustering",
    "bfs",
    "clustering_coefficients",
    "common_neighbors",
    "connected_components",
    "core_numbers",
    "count_all_bicliques",
    "count_bicliques",
    "diversity",
    "edge_support",
    "jaccard",
    "k_core",
    "k_truss",
    "list_bicliques",
    "pagerank",
    "shortest_path_tree",
    "shortest_paths",
    "similar",
    "strongly_connected_components",
    "top_diversity",
    "transitivity",
    "triangle_count",
    "triangles",
    "truss_numbers",
]

# The names that each folder has for this package.
_FOLDERS = {
    "bfs": ("bfs",),
    "biclique": ("Biclique", "count_all_bicliques", "count_bicliques", "list_bicliques"),
    "clustering": ("average_clustering", "clustering_coefficients", "transitivity"),
    "components": ("connected_components",),
    "core": ("core_numbers", "k_core"),
    "diversity": ("Diverse", "diversity", "top_diversity"),
    "pagerank": ("NotConverged", "pagerank"),
    "sharded": ("ShardedSnapshot",),
    "shortest_paths": ("PathTree", "shortest_path_tree", "shortest_paths"),
    "similarity": ("Similar", "common_neighbors", "jaccard", "similar"),
    "strong_components": ("strongly_connected_components",),
    "tracker": ("Tracker",),
    "triangles": ("Support", "edge_support", "triangle_count", "triangles"),
    "truss": ("Truss", "k_truss", "truss_numbers"),
}
_FOLDER_OF = {name: folder for folder, names in _FOLDERS.items() for name in names}


class _Folder(ModuleType):
    """A folder, for whoever calls it, taking it for a function."""

    def __call__(self, *args: Any, **options: Any) -> None:
        names = _FOLDERS[self.__name__.removeprefix(f"{__name__}.")]
        functions = [f"{__name__}.{name}" for name in names if name.islower()]
        asked = " or ".join(functions or [f"{__name__}.{name}" for name in names])
        raise TypeError(f"{self.__name__} is a module: call {asked}")


class _Package(ModuleType):
    """Some folders are named like their function. Importing such a folder would set the module
    under that name; this sets the function instead."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in _FOLDER_OF:
            value = getattr(value, name)
        elif isinstance(value, ModuleType) and name in _FOLDERS:
            value.__class__ = _Folder
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def _named(name: str) -> Any:
    """A name of this package, imported on first use."""
    if name in _FOLDER_OF:
        value = getattr(import_module(f".{_FOLDER_OF[name]}", __name__), name)
        setattr(sys.modules[__name__], name, value)
        return value
    if name in _FOLDERS:  # so that `import algorithms` brings its folders along
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # a type checker would take any name to be there
    __getattr__ = _named


def __dir__() -> list[str]:
    """What a user can use: not the modules that it is made of."""
    return sorted(__all__)
