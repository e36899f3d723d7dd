"""GET /openapi.json: what the service can be asked, for programs (OpenAPI 3.1).

The document is made of the table of endpoints (`routes.py`) and of the types of what they take and
answer (`messages.py`). A test holds real answers against its schemas; Schemathesis makes requests
from it. The options of algorithms are those that they declare (`runs.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from . import messages, runs
from .media import JSON
from .routes import OPERATIONS, Content, Operation

Schema = dict[str, Any]

_INFO = {
    "title": "lpma",
    "version": "1",
    "summary": "A streaming graph over HTTP",
    "description": "Queries are answered by the thread that applies the stream, between two "
    "batches: each answer names the `version` of the graph and its `time`, its place in the "
    "stream. Columns of msgpack are little-endian `bin`, with `rows` beside those of vertices, in "
    "the forms of the log's records; lists are taken too. Arrow's are one stream of record "
    "batches; neighbours are its rows (of, id, weight, time).",
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}
_TAGS = {
    "queries": "What is in the graph.",
    "updates": "What changes it.",
    "graph": "The graph as a whole.",
    "operation": "For orchestrators.",
    "page": "The live page, and what it asks for.",
}
_VERTEX_IN_PATH = (
    'A vertex as on the command line: 5 is an integer, "5" in quotes is text, ann is text.'
)
_PROBLEMS: dict[int | str, tuple[str, str]] = {  # by status: the answer's name, and what it says
    400: ("Malformed", "The request, or its body, is not of its form."),
    401: ("Unauthorized", "A token is asked for."),
    403: ("Forbidden", "The token does not allow it, or the request came from another page."),
    404: ("NotFound", "There is no such thing."),
    406: ("NotAcceptable", "No form of the answer fits Accept."),
    409: ("Conflict", "Not of this stream, or not of this graph."),
    410: ("Gone", "The rest of this answer is no longer kept."),
    413: ("TooLarge", "Too many bytes or rows, in the body or in the answer."),
    415: ("UnsupportedMediaType", "No form of a body is called so."),
    421: ("Misdirected", "The service is not known by the name in Host."),
    422: ("Unprocessable", "A field or a parameter is wrong."),
    429: ("RetryLater", "Too much is asked for at once."),
    431: ("HeadTooLarge", "The request has too many headers, or too long ones."),
    503: ("Unavailable", "Too many wait, memory ran out, or the stream has ended."),
    504: ("TooLate", "No answer within the service's deadline."),
    "default": ("Problem", "Any other problem."),
}
_OF_ALL = (400, 421, 431)  # statuses that the guard and the connection refuse any request with
_WITH_TOKEN = (401, 403)
_WRONG = {
    "type": "about:blank",
    "title": "Unprocessable Entity",
    "status": 422,
    "detail": "u[1]: expected int | str, got bool",
}
_BYTES = {"type": "string", "format": "binary"}


@cache
def document() -> bytes:
    """The document."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    found = {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {}],
        "tags": [{"name": name, "description": said} for name, said in _TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A read or a write token. On loopback none is needed unless the "
                    "service was given one.",
                }
            },
            "responses": {_PROBLEMS[status][0]: _problem(status) for status in _PROBLEMS},
            "schemas": _schemas(),
        },
    }
    return msgspec.json.encode(found)


def _ref(kind: str, name: str) -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


# Operations ----------------------------------------------------------------------------------


def _operation(operation: Operation) -> Schema:
    always = _OF_ALL if operation.is_public else _OF_ALL + _WITH_TOKEN
    statuses = sorted({*always, *operation.problems})
    answers = {str(status): _answer(content) for status, content in operation.gives.items()}
    refusals = {str(status): _ref("responses", _PROBLEMS[status][0]) for status in statuses}
    found: Schema = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": answers | refusals | {"default": _ref("responses", "Problem")},
    }
    if operation.description:
        found["description"] = operation.description
    if parameters := list(_parameters(operation)):
        found["parameters"] = parameters
    if operation.takes is not None:
        found["requestBody"] = {"required": True, "content": _content(operation.takes)}
    if operation.is_public:
        found["security"] = []
    return found


def _parameters(operation: Operation) -> Iterator[Schema]:
    if operation.name == "run":
        yield from runs.parameters()
        return
    for part in operation.path.split("/"):
        if part.startswith("{"):
            yield {
                "name": part[1:-1],
                "in": "path",
                "required": True,
                "description": _VERTEX_IN_PATH,
                "schema": {"type": "string", "minLength": 1},
                "example": "7",
            }
    (query,) = msgspec.json.schema_components([operation.query])[1].values()
    for name, schema in query["properties"].items():
        said = schema.pop("description")
        yield {"name": name, "in": "query", "description": said, "schema": schema}
    for name, said in operation.headers.items():
        yield {"name": name, "in": "header", "description": said, "schema": {"type": "string"}}


def _answer(content: Content) -> Schema:
    found: Schema = {"description": content.description, "content": _content(content)}
    if content.headers:
        found["headers"] = {
            name: {"description": said, "schema": {"type": "integer"}}
            for name, said in content.headers.items()
        }
    return found


def _content(content: Content) -> Schema:
    found = {}
    for media in content.media:
        found[media] = {"schema": _schema(content, media)}
        examples = content.example if isinstance(content.example, Mapping) else {}
        if media in examples:
            found[media]["example"] = examples[media]
        elif media == JSON and content.example is not None:
            found[media]["example"] = content.example
    return found


def _schema(content: Content, media: str) -> Schema:
    if media != JSON:
        is_text = media.startswith("text/") or media.endswith("jsonl")
        return {"type": "string"} if is_text else _BYTES
    if not content.types:
        return {"type": "object", "required": list(content.required)}
    every, _ = _components(content.types)
    return _plain(every[0] if len(every) == 1 else {"anyOf": every})


def _problem(status: int | str) -> Schema:
    content: Schema = {"schema": _ref("schemas", "Problem")}
    if status == 422:
        content["example"] = _WRONG
    found: Schema = {
        "description": _PROBLEMS[status][1],
        "content": {"application/problem+json": content},
    }
    if status in (429, 503):
        seconds = {"description": "Seconds.", "schema": {"type": "integer"}}
        found["headers"] = {"Retry-After": seconds}
    return found


# Schemas -------------------------------------------------------------------------------------


def _schemas() -> Schema:
    kinds: list[Any] = [messages.Problem]
    for operation in OPERATIONS:
        taken = () if operation.takes is None else operation.takes.types
        kinds += [*taken, *(kind for given in operation.gives.values() for kind in given.types)]
    _, found = _components(kinds)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, messages.PagedBody):
            needed = [name for name in kind.__struct_fields__ if name not in ("after", "cursor")]
            no_cursor, cursor = {"cursor": {"type": "null"}}, {"cursor": {"type": "string"}}
            found[kind.__name__]["anyOf"] = [
                {"required": needed, "properties": no_cursor},
                {"required": ["cursor"], "maxProperties": 1, "properties": cursor},
            ]
    found["Vertex"] = msgspec.json.schema(messages.AnyVertex)
    found["Kind"] = msgspec.json.schema(messages.Kinds)
    return _plain(found)


def _components(kinds: Sequence[Any]) -> tuple[Sequence[Schema], Schema]:
    """The schema of each type, and those that they refer to."""
    template = f"{messages.SCHEMAS}{{name}}"
    return msgspec.json.schema_components(kinds, ref_template=template)


def _plain(schema: Any) -> Any:
    """The same, where what refers to another schema does only that."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    return {name: _plain(each) for name, each in schema.items()}


# The endpoint --------------------------------------------------------------------------------


async def _openapi(request: Request) -> Response:
    return Response(document(), media_type="application/json")


def handlers(context: object) -> dict[str, Any]:
    return {"openapi": _openapi}
