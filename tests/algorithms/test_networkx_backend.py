"""NetworkX's backend "lpma": NetworkX's own tests of the functions it has, run through it, and what
those do not cover: labels of all kinds, attributes, weights, refusals."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given

from algorithms import networkx_backend as backend
from tests.support.strategies import edge_lists

ROOT = Path(__file__).parents[2]
ALGORITHMS = "networkx.algorithms"
MODULES = (
    f"{ALGORITHMS}.tests.test_core",
    f"{ALGORITHMS}.tests.test_cluster",
    f"{ALGORITHMS}.components.tests.test_connected",
    f"{ALGORITHMS}.link_analysis.tests.test_pagerank",
    f"{ALGORITHMS}.shortest_paths.tests.test_unweighted",
)
# What is left to NetworkX, each for a reason that can_run gives.
LEFT = {
    "core_number": {"lpma's cores are of undirected graphs"},
    "k_core": {"lpma's cores are of undirected graphs"},
    "pagerank": {f"lpma's PageRank has no {option}" for option in
                 ("personalization", "nstart", "dangling")},
}  # fmt: skip


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that finds this checkout's entry points, however it is (or is
    not) installed."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        points = tomllib.load(file)["project"]["entry-points"]
    lines = [f"[{group}]\nlpma = {points[group]['lpma']}\n" for group in points]
    site = tmp_path_factory.mktemp("site")
    installed = site / "lpma-0.dist-info"  # found before any other lpma, which it hides
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: lpma\nVersion: 0\n")
    (installed / "entry_points.txt").write_text("\n".join(lines))
    path = os.pathsep.join([str(site), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path}


def python(environment: dict[str, str], *arguments: str, folder: Path) -> str:
    finished = subprocess.run(
        [sys.executable, *arguments],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout[-4000:] + finished.stderr[-2000:]
    return finished.stdout


def test_networkxs_own_tests(registered: dict[str, str], tmp_path: Path) -> None:
    """All of them pass, and NetworkX's log says which calls came here and which could not."""
    log = tmp_path / "calls.log"
    environment = {
        **registered, "NETWORKX_TEST_BACKEND": "lpma", "NETWORKX_FALLBACK_TO_NX": "1"
    }  # fmt: skip
    python(
        environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", f"log_file={log}",
        "-o", "log_file_level=DEBUG", "--pyargs", *MODULES, folder=tmp_path,
    )  # fmt: skip
    text = log.read_text()
    came = re.findall(r"Using backend 'lpma' for call to '(\w+)'", text)
    assert set(came) == set(backend.FUNCTIONS)
    assert len(came) > 60
    for name, reason in re.findall(r"Backend 'lpma' can't run `(\w+)`.*?, because: (.*)", text):
        assert reason in LEFT[name], name
    assert "raised when calling" not in text
    assert "Graph conversion failed" not in text


def test_by_the_backend_argument(registered: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import networkx as nx; G = nx.karate_club_graph();"
        "assert nx.core_number(G, backend='lpma') == nx.core_number(G);"
        "assert list(nx.connected_components(G, backend='lpma')) == [set(G)];"
        "a, b = nx.pagerank(G, backend='lpma'), nx.pagerank(G);"
        "assert all(abs(a[v] - b[v]) < 1e-12 for v in G); print(len(a))"
    )
    options = ("-W", "ignore:.*conversions to backend graphs")
    assert python(registered, *options, "-c", code, folder=tmp_path) == "34\n"


def test_networkx_stays_light(registered: dict[str, str], tmp_path: Path) -> None:
    """The backend costs nothing when NetworkX is imported and the backend is not used."""
    code = (
        "import sys, networkx as nx; assert 'lpma' in nx.utils.backends.backends;"
        "print([name for name in ('numba', 'lpma', 'algorithms', 'cupy') if name in sys.modules])"
    )
    assert python(registered, "-c", code, folder=tmp_path) == "[]\n"


def test_what_is_told_is_there() -> None:
    for name in backend.FUNCTIONS:
        assert callable(getattr(backend, name))
        assert callable(getattr(nx, name))
    assert importlib.import_module(backend.__name__) is backend


# Against NetworkX -----------------------------------------------------------------------------


def labelled(n: int, src: Any, dst: Any, kind: Callable[[], Any]) -> Any:
    """A graph whose labels are strings, tuples and numbers, in mixed order."""
    names = [(f"v{i}", (i, "pair"), i / 2)[i % 3] for i in range(n)]
    graph = kind()
    graph.add_nodes_from(names[::-1])
    graph.add_edges_from((names[u], names[v]) for u, v in zip(src, dst, strict=True))
    return graph


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@given(graph=edge_lists(12))
def test_results_are_networkxs(kind: Callable[[], Any], graph: tuple[int, Any, Any]) -> None:
    n, src, dst = graph
    G = labelled(n, src, dst, kind)
    for number, (_, _, data) in enumerate(G.edges(data=True)):
        if number % 3:
            data["weight"] = number / 4
    converted = backend.convert_from_nx(G)
    assert (converted.is_directed(), converted.is_multigraph()) == (
        G.is_directed(), G.is_multigraph()
    )  # fmt: skip
    assert backend.convert_to_nx(converted) is G
    for source in list(G)[:3]:
        for cutoff in (None, 1):
            lengths = backend.single_source_shortest_path_length(converted, source, cutoff)
            assert lengths == nx.single_source_shortest_path_length(G, source, cutoff)
            assert all(type(length) is int for length in lengths.values())
    for weight in (None, "weight"):
        weighted = backend.convert_from_nx(G, edge_attrs={weight: 1} if weight else None)
        ranks = backend.pagerank(weighted, tol=1e-10, max_iter=500, weight=weight)
        wanted = nx.pagerank(G, tol=1e-10, max_iter=500, weight=weight)
        assert ranks == pytest.approx(wanted, rel=1e-9)
        assert all(type(rank) is float for rank in ranks.values())
    if not G.is_directed():
        assert list(backend.connected_components(converted)) == list(nx.connected_components(G))


@given(graph=edge_lists(12))
def test_dense_parts_are_networkxs(graph: tuple[int, Any, Any]) -> None:
    n, src, dst = graph
    G = labelled(n, src, dst, nx.Graph)
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    converted = backend.convert_from_nx(G)
    numbers = backend.core_number(converted)
    assert numbers == nx.core_number(G)
    assert list(numbers) == list(G)
    for k in (None, 0, 2, 5) if n else (0, 2):
        for given_numbers in (None, dict(numbers)):
            core = backend.k_core(converted, k, given_numbers)
            assert nx.utils.graphs_equal(core, nx.k_core(G, k))
    for k in (0, 2, 3, 4):
        assert nx.utils.graphs_equal(backend.k_truss(converted, k), nx.k_truss(G, k))
    for nodes in (None, [], list(G)[1:3]):
        assert backend.triangles(converted, nodes) == nx.triangles(G, nodes)
    for node in list(G)[:2]:
        assert backend.triangles(converted, node) == nx.triangles(G, node)


def test_a_core_keeps_attributes() -> None:
    G = nx.complete_graph(4)
    G.add_edge(0, "leaf", color="red")
    G.graph["name"], G.nodes[1]["size"], G[1][2]["color"] = "four", 3, "blue"
    core = backend.k_core(backend.convert_from_nx(G))
    assert set(core) == {0, 1, 2, 3}
    assert (core.graph["name"], core.nodes[1]["size"], core[1][2]["color"]) == ("four", 3, "blue")
    core.remove_node(0)
    assert 0 in G


def test_networkxs_errors() -> None:
    loop = backend.convert_from_nx(nx.Graph([(0, 1), (1, 1)]))
    refused: list[Callable[[Any], Any]] = [
        backend.core_number, backend.k_core, lambda G: backend.k_truss(G, 3)
    ]  # fmt: skip
    for function in refused:
        with pytest.raises(nx.NetworkXNotImplemented, match="self loops"):
            function(loop)
    with pytest.raises(nx.NodeNotFound):
        backend.single_source_shortest_path_length(loop, "absent")
    with pytest.raises(nx.PowerIterationFailedConvergence):
        backend.pagerank(loop, max_iter=1, tol=1e-12, weight=None)


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), "heavy", None, 1j])
def test_weights_that_are_left_to_networkx(weight: Any) -> None:
    G = nx.Graph()
    G.add_edge(0, 1, weight=weight)
    with pytest.raises(NotImplementedError, match="weights"):
        backend.convert_from_nx(G, edge_attrs={"weight": 1})


def test_can_run_says_why_not() -> None:
    G = nx.path_graph(3)
    assert backend.can_run("pagerank", (G, 0.85, None, 100), {"nstart": None}) is True
    assert backend.can_run("core_number", (), {"G": G}) is True
    for arguments, named in (((G, 0.85, {0: 1}), {}), ((G,), {"personalization": {0: 1}})):
        assert "personalization" in str(backend.can_run("pagerank", arguments, named))
    assert "undirected" in str(backend.can_run("k_core", (G.to_directed(),), {}))
