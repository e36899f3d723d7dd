"""What the page asks for beside the queries: distributions, neighbourhoods, dead letters."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import ingest
import lpma
from algorithms import core_numbers
from ingest.service import distributions, neighborhood
from ingest.service.distributions import binned

from .conftest import Served
from .http import ask

Serve = Callable[..., Served]


def get(served: Served, path: str, status: int = 200) -> Any:
    answer = ask(served.url, "GET", f"/v1/page/{path}")
    assert answer.status == status, answer.body
    return answer.json


def random_graph(**options: Any) -> tuple[lpma.Graph, Any]:
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 200, (2, 1500))
    graph = lpma.Graph(device="cpu", **options)
    graph.insert(src, dst)
    return graph, (src, dst)


def test_distributions_are_those_of_the_graph(serve_store: Serve) -> None:
    """Against core numbers and degrees counted one by one; a vertex without edges counts too."""
    graph, _ = random_graph()
    graph.add_vertices([500])
    found = get(serve_store(graph), "distributions")
    cores = core_numbers(graph.snapshot())
    there = [v for v in range(501) if graph.has_vertices(v)[0]]
    by_core = Counter(int(cores[v]) for v in there)
    assert dict(zip(found["cores"]["value"], found["cores"]["count"], strict=True)) == by_core
    assert found["vertices"] == len(there)
    bins = found["degrees"]
    for low, high, count in zip(bins["from"], bins["to"], bins["count"], strict=True):
        assert count == sum(low <= graph.degree(v) <= high for v in there)
    assert sum(bins["count"]) == len(there)
    assert [level["density"] for level in found["densities"]] == pytest.approx(
        graph.level_densities().tolist(), abs=1e-4
    )
    assert sum(level["segments"] for level in found["densities"]) == graph.segments


def test_an_empty_graph(serve_store: Serve) -> None:
    served = serve_store(lpma.Graph(device="cpu"))
    found = get(served, "distributions")
    assert (found["vertices"], found["cores"]["value"], found["degrees"]["count"]) == (0, [], [])
    assert "no edges yet" in get(served, "neighborhood", 404)["detail"]


def test_the_first_neighborhood_needs_nobody_to_have_asked_before(serve_stream: Serve) -> None:
    """Nor does it wait for the graph to be read again, once it has edges."""
    served = serve_stream()
    assert "no edges yet" in get(served, "neighborhood", 404)["detail"]
    served.produce([1, 1, 2], [2, 3, 1])
    served.settle()
    found = get(served, "neighborhood")
    assert (found["ids"], found["core"]) == ([1, 2, 3], [1, 1, 1])


def test_a_vertex_to_begin_with_may_have_gone(serve_stream: Serve) -> None:
    served = serve_stream()
    served.produce([1, 1, 5], [2, 3, 6])
    served.settle()
    assert get(served, "neighborhood")["ids"][0] == 1
    assert served.log is not None
    served.log.produce(
        "updates", ingest.encode_updates([1, 1], [2, 3], kind=[lpma.Kind.DELETE] * 2)
    )
    version = served.context.graph.version
    while served.context.graph.version == version:
        assert not served.failures
    assert get(served, "neighborhood")["ids"] == [5, 6]


def test_of_a_hub_as_many_are_read_as_are_considered(
    serve_store: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighborhood, "CONSIDERED", 3)
    for names in (False, True):
        graph = lpma.Graph(device="cpu", names=names, predecessors=True)
        graph.insert([7] * 9 + [9] * 5, [*range(20, 29), *range(7, 12)])
        with monkeypatch.context() as patch:
            patch.setattr(graph, "successors", lambda u: pytest.fail("all are read"))
            found = get(serve_store(graph), "neighborhood/7")
        assert found["ids"] == [7, 9, 20, 21, 22] if not names else [7, 20, 21, 22, 9]


def test_ids_that_are_far_apart(serve_store: Serve) -> None:
    """A snapshot with a row for each id would not fit: it is made compact."""
    graph = lpma.Graph(device="cpu")
    graph.insert([4_000_000_000, 5], [5, 4_100_000_000])
    served = serve_store(graph)
    assert get(served, "distributions")["vertices"] == 3
    assert get(served, "neighborhood/5")["core"] == [1, 1]


def test_the_graph_is_read_once_for_all_who_ask(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not again before it is due, however the stream goes on."""
    looks: list[int] = []
    analysed = distributions._analysed

    def counted(*given: Any) -> Any:
        looks.append(1)
        return analysed(*given)

    monkeypatch.setattr(distributions, "_analysed", counted)
    served = serve_stream()
    served.produce([1, 2], [2, 3])
    served.settle()
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(get(served, "distributions")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    served.produce([3], [4])
    served.settle()
    found.append(get(served, "distributions"))
    assert [each["version"] for each in found] == [1] * 9
    assert len(looks) == 1


def test_nothing_is_read_while_nobody_asks(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributions, "_copied", lambda moment: pytest.fail("read"))
    served = serve_stream()
    served.produce([1, 2], [2, 3])
    served.settle()
    assert ask(served.url, "GET", "/v1/page/letters").status == 200
    assert not served.failures


@pytest.mark.parametrize("values", [[], [0], [1, 1], [0, 1, 2, 3, 4, 7, 8, 1000, 2**40]])
def test_bins_hold_what_they_say(values: list[int]) -> None:
    bins = binned(np.array(values, np.int64))
    for low, high, count in zip(bins["from"], bins["to"], bins["count"], strict=True):
        assert count == sum(low <= value <= high for value in values) > 0
    assert sum(bins["count"]) == len(values)


@pytest.mark.parametrize("predecessors", [False, True])
def test_a_neighborhood_is_that_of_the_graph(serve_store: Serve, predecessors: bool) -> None:
    graph, (src, dst) = random_graph(predecessors=predecessors)
    served = serve_store(graph)
    get(served, "distributions")
    found = get(served, "neighborhood/7?limit=200")
    edges = set(zip(src.tolist(), dst.tolist(), strict=True))
    around = {v for u, v in edges if u == 7} | {u for u, v in edges if v == 7 and predecessors}
    ids = found["ids"]
    assert ids[0] == 7
    assert set(ids[1:]) == around - {7}
    pairs = {(ids[i], ids[j]) for i, j in found["edges"]}
    assert all(pair in edges for pair in pairs)
    joined = {frozenset((u, v)) for u, v in edges if u != v and u in ids and v in ids}
    assert {frozenset(pair) for pair in pairs} == joined
    assert found["degree"] == [graph.degree(id) for id in ids]
    cores = core_numbers(graph.snapshot())
    assert found["core"] == [int(cores[id]) for id in ids]
    few = get(served, "neighborhood/7?limit=3")
    assert (len(few["ids"]), few["neighbors"]) == (4, len(around - {7}))
    assert min(few["degree"][1:]) >= sorted(graph.degree(list(around - {7})))[-3]


def test_a_neighborhood_by_name(serve_stream: Serve) -> None:
    served = serve_stream(names=True)
    assert served.log is not None
    import ingest

    odd = 'a/"b" ü?'
    served.log.produce(
        "updates", ingest.encode_updates([odd, 5, "5"], ["ann", "5", odd], names=True)
    )
    served.settle()
    found = get(served, f"neighborhood/{quote(odd, safe='')}")
    assert found["ids"] == [odd, "ann"]
    assert get(served, "neighborhood/%225%22")["ids"] == ["5", odd]
    assert get(served, "neighborhood/5")["ids"] == [5, "5"]
    assert "no vertex bob" in get(served, "neighborhood/bob", 404)["detail"]
    get(served, "distributions")
    assert get(served, "neighborhood")["ids"][0] in (odd, 5, "5")


@pytest.mark.parametrize("limit", ["0", "201", "-1", "all", "50000", "1" * 5000])
def test_bad_limits(serve_store: Serve, limit: str) -> None:
    served = serve_store(random_graph()[0])
    assert "limit" in get(served, f"neighborhood/7?limit={limit}", 422)["detail"]


def test_a_word_that_is_no_vertex(serve_store: Serve) -> None:
    assert "ids here" in get(serve_store(random_graph()[0]), "neighborhood/ann", 422)["detail"]


def test_letters_and_checkpoints(serve_stream: Serve) -> None:
    served = serve_stream(checkpoint=True)
    assert served.log is not None
    assert served.pipeline is not None
    for number in range(60):
        served.log.produce("updates", b"\xff" + bytes(100) + str(number).encode())
    served.produce([1], [2])
    served.settle()
    found = get(served, "letters")
    assert (found["total"], found["reasons"], len(found["newest"])) == (60, {"malformed": 60}, 50)
    assert found["newest"][0]["bytes"] == 103
    assert found["newest"][0]["starts"] == "\\xff" + "\\x00" * 63
    assert [letter["offset"] for letter in found["newest"]] == list(range(59, 9, -1))
    assert get(served, "checkpoints")["kept"] is True


def test_a_saved_store_has_no_letters(serve_store: Serve) -> None:
    served = serve_store(random_graph()[0])
    assert get(served, "letters") == {"total": 0, "reasons": {}, "newest": []}
    assert get(served, "checkpoints") == {"age_s": None, "kept": False, "newest": []}
