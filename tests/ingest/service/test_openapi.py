"""openapi.json says what is true: of the routes, and of real answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs
import pytest
from starlette.routing import Route

import lpma
from ingest.service.app import make_app
from ingest.service.context import Context
from ingest.service.openapi import document
from ingest.service.stored import StoredGraph
from tests.ingest.service.http import ask, request

DOCUMENT = json.loads(document())
ONE = re.compile(r"(/v1/[a-z]+)/\{vertex\}")  # whose vertices the endpoint itself tells apart


def documented() -> set[tuple[str, str]]:
    return {
        (method, ONE.sub(r"\1/{vertex}", path))
        for path, methods in DOCUMENT["paths"].items()
        for method in methods
    }


def routed() -> Iterator[tuple[str, str]]:
    graph = lpma.Graph(device="cpu")
    with StoredGraph(graph) as stored, Context(stored.requests, graph) as context:
        for route in make_app(context).routes:
            if isinstance(route, Route):  # and not the files of the page
                path = re.sub(r":\w+\}", "}", route.path)
                for method in (route.methods or set()) - {"HEAD"}:
                    yield method.lower(), path


def test_every_route_is_documented_and_nothing_else() -> None:
    queries = r"(/v1/(?:edges|successors|predecessors|degree|vertices|hops))/\{.*\}"
    told = {(method, re.sub(queries, r"\1/{vertex}", path)) for method, path in documented()}
    assert told == set(routed())


def test_every_reference_leads_somewhere() -> None:
    for reference in re.findall(r'"#/([^"]+)"', document().decode()):
        part = DOCUMENT
        for name in reference.split("/"):
            part = part[name]
    ids = [each["operationId"] for path in DOCUMENT["paths"].values() for each in path.values()]
    assert len(ids) == len(set(ids))


def test_refusals_that_every_endpoint_has_are_said() -> None:
    for path, method in operations():
        assert {"400", "421", "431"} <= DOCUMENT["paths"][path][method]["responses"].keys()


def schema_of(path: str, method: str, status: int) -> Any:
    """The schema of an answer in JSON, with all that it refers to."""
    responses = DOCUMENT["paths"][path][method]["responses"]
    found = responses.get(str(status), responses.get("default"))
    while "$ref" in found:
        part: Any = DOCUMENT
        for name in found["$ref"][2:].split("/"):
            part = part[name]
        found = part
    (content,) = [c for kind, c in found["content"].items() if kind.endswith("json")]
    return {**content["schema"], "components": DOCUMENT["components"]}


def check(path: str, method: str, answer: Any) -> None:
    assert jsonschema_rs.is_valid(schema_of(path, method, answer.status), answer.json), answer


def operations() -> list[tuple[str, str]]:
    return [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]


@pytest.mark.parametrize("named", [False, True], ids=["ids", "names"])
@pytest.mark.parametrize("weight", ["float32", None])
def test_real_answers_fit_their_schemas(
    serve_stream: Callable[..., Any], named: bool, weight: str | None
) -> None:
    options = {"weight_dtype": weight, "times": weight is not None, "predecessors": True}
    served = serve_stream(names=named, **options)
    served.produce([1, 1, 2], [2, 3, 3], **({"names": True} if named else {}))
    served.settle()
    for path, method in operations():
        of = DOCUMENT["paths"][path][method]
        body = (of.get("requestBody") or {}).get("content", {}).get("application/json", {})
        if method == "post":
            answer = request(f"{served.url}{path}", json.dumps(body["example"]).encode())
            assert answer.status in (200, 202)
            check(path, method, answer)
            wrong = request(f"{served.url}{path}", b"{")
            assert wrong.status == 400
            check(path, method, wrong)
        elif path.startswith("/v1/") and path not in ("/v1/events", "/v1/snapshot"):
            asked = path.replace("{algorithm}", "core") + ("?k=2" if "hops" in path else "")
            answer = request(f"{served.url}{re.sub(r'{.*?}', '1', asked)}")
            check(path, method, answer)
            if "{" in path:
                assert answer.status == 200
    assert request(f"{served.url}/openapi.json").json == DOCUMENT
    assert ask(served.url, "DELETE", "/v1/degree/1").status == 405


def test_examples_fit_their_schemas() -> None:
    for path, method in operations():
        of = DOCUMENT["paths"][path][method]
        for part in (of.get("requestBody"), of["responses"]["200"]):
            content = (part or {}).get("content", {}).get("application/json", {})
            if "example" in content:
                schema = {**content["schema"], "components": DOCUMENT["components"]}
                assert jsonschema_rs.is_valid(schema, content["example"]), (path, method)
