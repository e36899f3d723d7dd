"""What NetworkX is told of the backend "lpma" whenever it is imported.

It stands outside the packages, as other backends' do, because importing one of those would make
every `import networkx` wait for Numba. The backend itself is `algorithms.networkx_backend`.
"""

from __future__ import annotations

from typing import Any

FUNCTIONS = (
    "connected_components",
    "core_number",
    "k_core",
    "k_truss",
    "pagerank",
    "single_source_shortest_path_length",
    "triangles",
)


def get_info() -> dict[str, Any]:
    """The record that the entry point `networkx.backend_info` asks for.

    `nx.config.backends.lpma.device` is where graphs are converted to: "auto", "cpu", "cuda:1"."""
    return {
        "backend_name": "lpma",
        "package": "lpma",
        "short_summary": "Parallel kernels on the CPU or on an NVIDIA GPU.",
        "default_config": {"device": "auto"},
        "functions": {name: {} for name in FUNCTIONS},
    }
