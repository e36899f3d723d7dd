"""NetworkX's backend "lpma": NetworkX's own tests of the functions it has, run through it; what
NetworkX is told; conversion, its cache, and refusals. Results: test_networkx_results.py; what its
versions do differently: test_networkx_versions.py."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from algorithms.networkx import backend, convert, converted
from algorithms.networkx.converted import is_since
from algorithms.networkx.info import SERVED, get_info
from algorithms.networkx.refusals import SMALL

BY_WEIGHT = {name for name, served in SERVED.items() if served.by_weight}
SINCE_3_5 = {name for name, served in SERVED.items() if served.since}

ROOT = Path(__file__).parents[2]
ALGORITHMS = "networkx.algorithms"
MODULES = (
    f"{ALGORITHMS}.tests.test_core",
    f"{ALGORITHMS}.tests.test_cluster",
    f"{ALGORITHMS}.tests.test_distance_measures::TestDistance",
    f"{ALGORITHMS}.tests.test_isolate",
    f"{ALGORITHMS}.tests.test_link_prediction",
    f"{ALGORITHMS}.tests.test_reciprocity",
    f"{ALGORITHMS}.centrality.tests.test_closeness_centrality",
    f"{ALGORITHMS}.centrality.tests.test_degree_centrality",
    f"{ALGORITHMS}.components.tests.test_connected",
    f"{ALGORITHMS}.components.tests.test_strongly_connected",
    f"{ALGORITHMS}.components.tests.test_weakly_connected",
    f"{ALGORITHMS}.link_analysis.tests.test_hits",
    f"{ALGORITHMS}.link_analysis.tests.test_pagerank",
    f"{ALGORITHMS}.shortest_paths.tests.test_generic",
    f"{ALGORITHMS}.shortest_paths.tests.test_unweighted",
    f"{ALGORITHMS}.shortest_paths.tests.test_weighted",
    f"{ALGORITHMS}.tests.test_dag::TestDAG",
    f"{ALGORITHMS}.traversal.tests.test_bfs",
)
LONG = "use_bounds_on_off"  # 120,000 lengths by weight, all left to NetworkX
# What NetworkX's tests ask for and is left to it, by function and by what the reason must name.
LEFT = {
    "core_number": "undirected", "clustering": "no weight", "average_clustering": "no weight",
    "average_shortest_path_length": "no weight", "shortest_path_length": "no weight|method",
    "closeness_centrality": "no distance|no sp", "bfs_edges": "no sort_neighbors",
    "eccentricity": "no weight|no sp", "hits": "method",
    **dict.fromkeys(("k_core", "k_shell", "k_crust", "k_corona"), "parallel edges"),
    **dict.fromkeys(SINCE_3_5, "of NetworkX 3.5"),
    **dict.fromkeys(BY_WEIGHT, "parallel edges|no function"),
}  # fmt: skip
# The arguments that NetworkX has had since 3.7.
SINCE_3_7 = {"hits": "method", "closeness_centrality": "sp"}


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


@pytest.mark.integration
def test_networkxs_own_tests(registered: dict[str, str], tmp_path: Path) -> None:
    """All of them pass, and NetworkX's log says which calls came here, and why others could not."""
    log = tmp_path / "calls.log"
    environment = {
        **registered, "NETWORKX_TEST_BACKEND": "lpma", "NETWORKX_FALLBACK_TO_NX": "1"
    }  # fmt: skip
    python(
        environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", f"log_file={log}",
        "-o", "log_file_level=DEBUG", "-k", f"not {LONG}", "--pyargs", *MODULES, folder=tmp_path,
    )  # fmt: skip
    text = log.read_text()
    came = re.findall(r"Using backend 'lpma' for call to [`'](\w+)'", text)
    assert set(came) == set(SERVED) - (set() if is_since(3, 5) else SINCE_3_5)
    assert len(came) > 500
    refused = re.findall(r"Backend 'lpma' can't run `(\w+)`.*?, because: (.*)", text)
    assert all(re.search(LEFT[name], reason) for name, reason in set(refused))
    assert len(refused) < len(came) / 4
    assert "raised when calling" not in text
    failed = re.findall(r"Graph conversion failed.*for call to [`'](\w+)'", text)
    assert set(failed) <= {"pagerank", "hits", *BY_WEIGHT}, "weights that are left to NetworkX"


def test_by_the_backend_argument(registered: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import networkx as nx; G = nx.karate_club_graph();"
        "assert nx.core_number(G, backend='lpma') == nx.core_number(G);"
        "assert list(nx.connected_components(G, backend='lpma')) == [set(G)];"
        "exact = {'tol': 1e-14, 'max_iter': 500};"
        "a, b = nx.pagerank(G, backend='lpma', **exact), nx.pagerank(G, **exact);"
        "assert all(abs(a[v] - b[v]) < 1e-12 for v in G); print(len(a))"
    )
    options = ("-W", "ignore:.*conversions to backend graphs")
    assert python(registered, *options, "-c", code, folder=tmp_path) == "34\n"


def test_by_priority(registered: dict[str, str], tmp_path: Path) -> None:
    """Small graphs are left to NetworkX; large ones come here, once converted for all."""
    code = (
        "import logging, networkx as nx; logging.basicConfig(level=logging.DEBUG);"
        "nx.config.backend_priority = ['lpma'];"
        "small, large = nx.path_graph(9), nx.gnm_random_graph(3000, 9000, seed=1);"
        "nx.core_number(small); nx.core_number(large); nx.degree_centrality(large)"
    )
    environment = {**registered, "NETWORKX_WARNINGS_TO_IGNORE": "cache"}
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    assert re.findall(r"Using backend 'lpma' for call to [`'](\w+)'", finished.stderr) == [
        "core_number", "degree_centrality"
    ]  # fmt: skip
    assert "so small a graph" in finished.stderr
    assert finished.stderr.count("Caching converted graph") == 1


FELL_BACK = """
import warnings, networkx as nx
plain, kept = nx.Graph(), nx.Graph()
for G in (plain, kept):
    G.add_weighted_edges_from([(0, 1, 2**53 + 1), (1, 2, 2**53)])
    G.add_node(4)
calls = [
    lambda G: dict(nx.all_pairs_dijkstra_path_length(G)),
    lambda G: nx.dijkstra_path_length(G, 0, 1),
    lambda G: nx.bellman_ford_path_length(G, 0, 2),
    lambda G: (nx.has_path(G, None, 1), nx.has_path(G, 1, None)),
    lambda G: nx.pagerank(G, nstart={0: 0}),
    lambda G: nx.pagerank(G, dangling={0: 0}),
    lambda G: nx.pagerank(G, max_iter=True),
    lambda G: nx.pagerank(G, tol=None),
    lambda G: nx.pagerank(G, alpha="x"),
]
def outcome(call, G):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = call(G)
        except Exception as error:
            value = repr(error)
    said = [str(each.message) for each in caught if each.category is RuntimeWarning]
    return value, said
wanted = [outcome(call, plain) for call in calls]
nx.config.warnings_to_ignore = {"cache"}
for name in ("core_number", "pagerank", "dijkstra_path_length"):  # kept: by now it is converted
    getattr(nx, name)(kept, *([0, 0] if "path" in name else []), backend="lpma")
nx.config.backend_priority = ["lpma"]
found = [outcome(call, kept) for call in calls]
print(found == wanted or (found, wanted))
"""


def test_what_is_refused_falls_back(registered: dict[str, str], tmp_path: Path) -> None:
    """By priority, what lpma cannot do is what it is without lpma, however late it is found."""
    assert python(registered, "-c", FELL_BACK, folder=tmp_path) == "True\n"


CHANGED = """
import warnings, networkx as nx
warnings.simplefilter("ignore")
G = nx.gnm_random_graph(40, 150, seed=1)
for number, (_, _, data) in enumerate(G.edges(data=True)):
    data["weight"] = 1 + number % 3
D = nx.DiGraph(G)
class Named(nx.Graph):
    pass
class Stored(nx.Graph):
    adjlist_inner_dict_factory = type("Row", (dict,), {})
class Told(nx.Graph):
    def add_edge(self, *args, **data):
        self._adj[args[0]][args[1]] = self._adj[args[1]][args[0]] = data
cases = [  # each graph, and the graph whose dictionaries it has
    (G, G), (D, D), *((own, own) for own in (Named(G), Stored(G), Told(G))),
    (G.subgraph(range(30)), G), (G.edge_subgraph(list(G.edges())[:99]), G),
    (nx.restricted_view(D, [1], [(2, 3)]), D), (nx.subgraph_view(G, filter_node=bool), G),
    (D.reverse(copy=False), D), (D.to_undirected(as_view=True), D),
    (G.to_directed(as_view=True).subgraph(range(35)), G), (G.copy(as_view=True), G),
]
calls = [
    lambda G, **o: nx.pagerank(G, tol=1e-12, max_iter=999, **o),
    lambda G, **o: nx.single_source_dijkstra_path_length(G, 5, **o),
    lambda G, **o: nx.single_source_shortest_path_length(G, 5, **o),
    lambda G, **o: sorted(nx.bfs_edges(G, 5, **o)),
    lambda G, **o: nx.triangles(nx.Graph(G), **o),
    lambda G, **o: nx.closeness_centrality(G, **o),
]
def first(G, H):
    return next(e if G.has_edge(*e) else e[::-1] for e in H.edges())
def weigh(G, H):
    u, v = first(G, H)
    G[u][v]["weight"] = 99
def add(G, H):
    G.add_edge(5, 20 + len(G.edges) % 9, weight=0.5)
def cut(G, H):
    G.remove_edge(*first(G, H))
wrong = []
for change in (weigh, add, cut, weigh, add):
    for number, (H, parent) in enumerate(cases):
        for call in calls:
            call(H, backend="lpma")  # converts it, if it was not kept
        change(parent, H)
        for call in calls:
            ours, theirs = call(H, backend="lpma"), call(H)
            near = ours == theirs or (
                isinstance(ours, dict) and ours.keys() == theirs.keys()
                and all(abs(ours[v] - theirs[v]) < 1e-9 for v in ours)
            )
            if not near:
                wrong.append((change.__name__, number, calls.index(call)))
kept = []
for number, (H, _) in enumerate(cases):
    nx.pagerank(H, backend="lpma")
    if H.__networkx_cache__["backends"].get("lpma"):
        kept.append(number)
print(wrong, kept)
"""


def test_no_call_is_answered_from_a_graph_that_was(
    registered: dict[str, str], tmp_path: Path
) -> None:
    """Of a graph, or what is behind a view, that changed by its methods or in place. What NetworkX
    drops in time is kept: two of its own classes, and a subclass that is nothing else."""
    assert python(registered, "-c", CHANGED, folder=tmp_path) == "[] [0, 1, 2]\n"


def test_views_and_subclasses_by_priority(registered: dict[str, str], tmp_path: Path) -> None:
    """A program that works without lpma works with it, and large views come here."""
    code = (
        "import logging, networkx as nx; logging.basicConfig(level=logging.DEBUG);"
        "M = nx.MultiGraph(nx.gnm_random_graph(999, 5000, seed=1)); M.add_edge(0, 1);"
        "view = M.edge_subgraph(list(M.edges(keys=True))[:-9]);"
        "lopsided = nx.subgraph_view(nx.Graph(M), filter_edge=lambda u, v: u < v);"
        "small = nx.gnm_random_graph(30, 120, seed=2);"
        "calls = [lambda: nx.pagerank(view, tol=1e-12, max_iter=999),"
        "lambda: list(nx.connected_components(view)), lambda: nx.closeness_centrality(lopsided),"
        "lambda: nx.approximation.k_components(small)];"
        "wanted = [call() for call in calls];"
        "nx.config.backend_priority = ['lpma']; nx.config.warnings_to_ignore = {'cache'};"
        "found = [call() for call in calls];"
        "ranks = zip(wanted.pop(0).items(), found.pop(0).items(), strict=True);"
        "assert all(u == v and abs(a - b) < 1e-9 for (u, a), (v, b) in ranks);"
        "print(found == wanted)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env=registered, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    assert finished.stdout == "True\n"
    used = re.findall(r"Using backend 'lpma' for call to [`'](\w+)'", finished.stderr)
    assert {"pagerank", "connected_components"} <= set(used)
    assert "from one end only" in finished.stderr


def test_networkx_stays_light(registered: dict[str, str], tmp_path: Path) -> None:
    """NetworkX, imported, knows what the backend serves, and has imported no more than the module
    that says so."""
    code = (
        "import sys, networkx as nx;"
        "told = nx.utils.backends.backend_info['lpma']['functions'];"
        "heavy = ('numba', 'numpy', 'scipy', 'lpma', 'cupy');"
        "print(len(told), [name for name in heavy if name in sys.modules],"
        "sorted(name for name in sys.modules if name.startswith('algorithms')))"
    )
    ours = ["algorithms", "algorithms.networkx", "algorithms.networkx.info"]
    assert python(registered, "-c", code, folder=tmp_path) == f"{len(SERVED)} [] {ours}\n"


def test_what_is_told_is_there() -> None:
    """Every function, with NetworkX's arguments and their defaults. What is new in it is there with
    an older one, too, but refused."""
    assert get_info()["functions"].keys() == SERVED.keys()
    interface = {"can_run", "should_run", "convert_from_nx", "convert_to_nx"}
    assert {*SERVED, *interface} == set(backend.__all__)
    for name in SERVED:
        ours = dict(signature(getattr(backend, name)).parameters)
        theirs = dict(signature(getattr(nx, name).orig_func).parameters)
        if not is_since(3, 7):
            ours.pop(SINCE_3_7.get(name, ""), None)
        assert list(ours) == list(theirs), name
        for argument, parameter in theirs.items():
            assert ours[argument].kind == parameter.kind, name
            # A method that is not given is NetworkX's, of any version: test_networkx_versions.py.
            default = None if argument == "method" and name == "hits" else parameter.default
            assert ours[argument].default == default, name


# Conversion -----------------------------------------------------------------------------------


def test_a_core_keeps_attributes() -> None:
    G = nx.complete_graph(4)
    G.add_edge(0, "leaf", color="red")
    G.graph["name"], G.nodes[1]["size"], G[1][2]["color"] = "four", 3, "blue"
    core = backend.k_core(backend.convert_from_nx(G))
    assert set(core) == {0, 1, 2, 3}
    assert (core.graph["name"], core.nodes[1]["size"], core[1][2]["color"]) == ("four", 3, "blue")
    core.remove_node(0)
    assert 0 in G


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize(
    "labels",
    [[0, 1, 2, 3], [3, 1, 0, 2], [40, 7, 9, 0], [10**9, 1, 2, 3], [-1, 0, 1, 2], [0.0, 1, "a", ()]],
    ids=["in order", "shuffled", "gaps", "large", "negative", "mixed"],
)
def test_rows_are_networkxs(kind: Callable[[], Any], labels: list[Any]) -> None:
    """In NetworkX's order, however labels are numbered; and sorted."""
    G = kind()
    G.add_nodes_from(labels)
    a, b, c, d = labels
    G.add_edges_from([(c, b), (a, d), (a, b), (b, b), (a, b), (b, c)])
    made = backend.convert_from_nx(G)
    for rows, adjacent in ((made.structure.rows, G.adj), (made.predecessors, _pred(G))):
        for i, label in enumerate(labels):
            row = rows.indices[rows.indptr[i] : rows.indptr[i + 1]].tolist()
            assert [labels[v] for v in row] == list(adjacent[label])
    s = made.weighted(None)
    assert np.array_equal(s.to_scipy().toarray(), nx.to_numpy_array(G, weight="none"))
    assert s.num_edges == nx.Graph(G).number_of_edges() if not G.is_directed() else True
    assert backend.convert_to_nx(made) is G


def _pred(G: Any) -> Any:
    return G.pred if G.is_directed() else G.adj


def test_a_view_of_a_graph() -> None:
    G = nx.gnp_random_graph(30, 0.3, seed=1)
    part = nx.subgraph_view(G, filter_node=lambda v: v % 3 > 0)
    assert backend.core_number(backend.convert_from_nx(part)) == nx.core_number(part)
    H = nx.DiGraph(G).reverse(copy=False)
    assert backend.descendants(backend.convert_from_nx(H), 1) == nx.descendants(H, 1)


def test_conversions_of_a_graph_share_its_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that NetworkX keeps; a graph that has changed is read again."""
    G = nx.path_graph(3)
    read: list[Any] = []

    def counted(graph: Any) -> convert.Structure:
        read.append(graph)
        return convert.structure_of(graph)

    monkeypatch.setattr(converted, "structure_of", counted)
    cache = G.__networkx_cache__.setdefault("backends", {}).setdefault("lpma", {})
    cache[False, False] = first = backend.convert_from_nx(G)
    cache[frozenset({("other", 1)}), False] = "FAILED_TO_CONVERT"
    second = backend.convert_from_nx(G, edge_attrs={"weight": 1})
    assert second.structure is first.structure
    assert len(read) == 1
    G.add_edge(2, 0)
    assert backend.triangles(backend.convert_from_nx(G)) == {0: 1, 1: 1, 2: 1}
    assert len(read) == 2


@pytest.mark.parametrize(
    "weight",
    [
        -1, float("nan"), float("inf"), "heavy", "3", b"3", np.str_("3"), None, 1j,
        np.complex128(1 + 2j), np.complex64(1), Fraction(1, 3), 10**400,
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_weights_that_are_left_to_networkx(kind: Callable[[], Any], weight: Any) -> None:
    G = kind()
    G.add_edge(0, 1, weight=weight)
    G.add_edge(1, 2, weight=1)
    with pytest.raises(NotImplementedError, match="weights"):
        backend.convert_from_nx(G, edge_attrs={"weight": 1})
    with pytest.raises(NotImplementedError, match="weights"):
        backend.pagerank(backend.convert_from_nx(G))


@pytest.mark.parametrize(
    "weight", [2, 2.5, True, np.int8(2), np.uint64(2), np.float32(2.5), np.float64(2.5), np.True_]
)
def test_weights_that_are_taken(weight: Any) -> None:
    G = nx.Graph()
    G.add_edge(0, 1, weight=weight)
    found = backend.dijkstra_path_length(backend.convert_from_nx(G), 0, 1)
    assert found == nx.dijkstra_path_length(G, 0, 1)


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
    with pytest.raises(nx.NetworkXError, match="not in the graph"):
        next(backend.bfs_edges(loop, [0]))
    with pytest.raises(nx.NodeNotFound, match="Node 5"):
        backend.jaccard_coefficient(loop, [(0, 1), (0, 5)])
    with pytest.raises(ZeroDivisionError):
        list(backend.adamic_adar_index(backend.convert_from_nx(nx.path_graph(2)), [(0, 0)]))


# Refusals -------------------------------------------------------------------------------------

P = nx.path_graph(3)


@pytest.mark.parametrize(
    "name, args, kwargs, reason",
    [
        ("core_number", (P.to_directed(),), {}, "undirected"),
        ("core_number", (P,), {"depth": 1}, "arguments"),
        ("transitivity", (nx.MultiGraph(P),), {}, "parallel"),
        ("overall_reciprocity", (P,), {}, "directed"),
        ("clustering", (P, None, "weight"), {}, "weight"),
        ("closeness_centrality", (P,), {"distance": "weight"}, "distance"),
        ("closeness_centrality", (P,), {"sp": {}}, "sp"),
        ("k_core", (nx.MultiGraph(P),), {}, "parallel"),
        ("hits", (P,), {"method": "magic"}, "method"),
        ("shortest_path_length", (P, 0, 1, "weight"), {}, "weight"),
        ("shortest_path_length", (P,), {"method": "magic"}, "method"),
        ("average_shortest_path_length", (P,), {"method": "floyd-warshall"}, "breadth-first"),
        ("eccentricity", (P, None, {}), {}, "sp"),
        ("bfs_edges", (P, 0), {"sort_neighbors": sorted}, "sort_neighbors"),
        ("pagerank", (P, 1.5), {}, "probability"),
        ("pagerank", (P,), {"tol": -1}, "0 or more"),
        ("pagerank", (P,), {"max_iter": 1.5}, "rounds"),
        ("pagerank", (P, "x"), {}, "probability"),
        ("pagerank", (P,), {"tol": None}, "0 or more"),
        ("pagerank", (P,), {"max_iter": True}, "rounds"),
        ("pagerank", (P,), {"max_iter": 10**30}, "rounds"),
        ("has_path", (P, None, 1), {}, "one node"),
        ("has_path", (P, 1), {"target": None}, "one node"),
    ],
)
def test_can_run_says_why_not(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str
) -> None:
    assert reason in str(backend.can_run(name, args, kwargs))


def test_can_run() -> None:
    assert backend.can_run("core_number", (), {"G": P}) is True
    assert backend.can_run("pagerank", (P, 0.85, {0: 1}, 100), {"nstart": {1: 1}}) is True
    assert backend.can_run("pagerank", (P,), {"max_iter": np.int64(100), "alpha": 1}) is True
    assert backend.can_run("clustering", (P,), {"weight": None}) is True


@pytest.mark.parametrize("name", sorted(SERVED))
def test_can_run_takes_anything(name: str) -> None:
    """Whatever an argument is, it is served or refused, without an error."""
    odd = [None, True, "x", b"x", 1j, math.nan, 10**400, Decimal(1), [], {}, np.arange(2), object()]
    _, *others = signature(getattr(backend, name)).parameters.values()
    required = {p.name: 0 for p in others if p.default is p.empty}
    for parameter, value in product(others, odd):
        answer = backend.can_run(name, (P,), {**required, parameter.name: value})
        assert answer is True or isinstance(answer, str)


def test_should_run_says_why_not() -> None:
    large = nx.empty_graph(SMALL)
    assert backend.should_run("core_number", (large,), {}) is True
    assert "small" in str(backend.should_run("core_number", (P,), {}))
    assert "less time" in str(backend.should_run("degree_centrality", (large,), {}))
    assert "part" in str(backend.should_run("clustering", (large, [1]), {}))
    assert backend.should_run("core_number", (backend.convert_from_nx(P),), {}) is True
    kept = nx.path_graph(3)
    kept.__networkx_cache__["backends"] = {"lpma": {(False, False): backend.convert_from_nx(kept)}}
    assert backend.should_run("degree_centrality", (kept,), {}) is True
