"""What requests and answers hold: fields, their types and bounds, each declared once.

Idea: a `msgspec.Struct` decodes and checks what a client sends, and OpenAPI's schemas are made from
the same declaration (`openapi.py`), whose readers the descriptions are for.

    …Body     the body of a POST: JSON, or columns of msgpack and Arrow (`query_codecs.py`)
    …Query    the parameters of a URL (`parameters`)
    others    answers in JSON

How many vertices a body may name is up to the service (`Limits.max_rows`), and which of them can
exist up to the graph: `query_codecs.py` checks both after decoding.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ..errors import RecordError
from ..types import MAX_TEXT_BYTES
from ..views import ABOUT
from .context import Limits

Message = TypeVar("Message", bound=Struct)

RING = 10_000  # events that the service keeps
MOST_SHOWN = 200  # neighbours on the page
SCHEMAS = "#/components/schemas/"

AnyVertex = Annotated[
    Annotated[int, Meta(ge=-(2**63), extra_json_schema={"maximum": 2**64 - 1})]
    | Annotated[str, Meta(min_length=1, max_length=1024)],
    Meta(description="An id; or, where vertices go by names, an integer of 64 bits or text."),
]
Vertex = Annotated[int | str, Meta(extra_json_schema={"$ref": f"{SCHEMAS}Vertex"})]
Column = Annotated[
    list[Vertex],
    Meta(description="Vertices.", extra_json_schema={"maxItems": Limits().max_rows}),
]
Steps = Annotated[
    int, Meta(ge=1, le=255, description="Steps, up to the service's max_hops; not with a cursor.")
]
Count = Annotated[int, Meta(ge=0)]


def _said(description: str, **bounds: Any) -> Meta:
    return Meta(description=description, **bounds)


# Bodies --------------------------------------------------------------------------------------

_LAST = "neighbour that is known already"


class EdgesBody(Struct, forbid_unknown_fields=True):
    src: Annotated[Column, _said("The sources.")]
    dst: Annotated[Column, _said("The targets, as many.")]


class DegreeBody(Struct, forbid_unknown_fields=True):
    u: Column


class VerticesBody(Struct, forbid_unknown_fields=True):
    v: Column


class PagedBody(Struct, forbid_unknown_fields=True):
    """Of a query whose answer comes in pages. The vertices are required, but beside `cursor`."""

    after: Annotated[
        list[Vertex | None] | None,
        _said(f"For each vertex the last {_LAST}, or null: only rows above it are wanted."),
    ] = None
    cursor: Annotated[
        Annotated[str, Meta(min_length=1)] | None, _said("Of the page before; it stands alone.")
    ] = None


class SuccessorsBody(PagedBody):
    u: Column | UnsetType = UNSET


class PredecessorsBody(PagedBody):
    v: Column | UnsetType = UNSET


class HopsBody(PagedBody):
    u: Column | UnsetType = UNSET
    k: Steps | UnsetType = UNSET


Words = Literal["append", "delete", "add_vertex", "remove_vertex", "expire", "set"]
Numbers = Literal[0, 1, 2, 3, 4, 11]
Kinds = Literal[Words, Numbers]
UpdateKind = Annotated[Kinds, Meta(extra_json_schema={"$ref": f"{SCHEMAS}Kind"})]


class UpdateColumns(Struct, forbid_unknown_fields=True):
    src: list[Vertex]
    dst: Annotated[
        list[Vertex | None] | None,
        _said("null where an operation on one vertex has none; without any, it may be left out"),
    ] = None
    weight: list[float] | None = None
    time: list[int] | None = None
    kind: list[UpdateKind] | None = None
    source: str | None = None
    seq: Count | None = None


class UpdateRow(Struct, forbid_unknown_fields=True):
    """As a topic of JSON has it: see `update_codecs.py`, which reads it."""

    src: Vertex | None = None
    dst: Vertex | None = None
    weight: float | None = None
    time: Annotated[int | str | None, _said("In ms since 1970, or a date of ISO 8601.")] = None
    kind: Words | None = None
    source: str | None = None
    seq: Count | None = None


# Parameters ----------------------------------------------------------------------------------


class NoQuery(Struct, forbid_unknown_fields=True):
    pass


class PagedQuery(Struct, forbid_unknown_fields=True):
    after: (
        Annotated[str, _said(f"The last {_LAST}: only rows above it are wanted.", min_length=1)]
        | UnsetType
    ) = UNSET
    cursor: Annotated[str, _said("Of the page before.", min_length=1)] | UnsetType = UNSET


class HopsQuery(PagedQuery):
    k: Steps | UnsetType = UNSET


_Wait = Annotated[
    Literal["applied"], _said("Answer when the updates are in the graph, with the version.")
]
_Source = Annotated[
    str,
    _said(
        "Who sends, for what is sent again; with seq.",
        min_length=1, extra_json_schema={"maxLength": MAX_TEXT_BYTES},
    ),
]  # fmt: skip
_Seq = Annotated[
    int,
    _said("The number of this request, rising with each of its source.", ge=0, le=2**63 - 1),
]


class UpdatesQuery(Struct, forbid_unknown_fields=True):
    wait: _Wait | UnsetType = UNSET
    source: _Source | UnsetType = UNSET
    seq: _Seq | UnsetType = UNSET


class SnapshotQuery(Struct, forbid_unknown_fields=True):
    format: (
        Annotated[Literal["arrow", "npz"], _said("What comes; absent: by Accept.")] | UnsetType
    ) = UNSET
    compact: Annotated[
        Literal["true", "false"], _said("Only rows that are vertices, renumbered.")
    ] = "false"
    since: Annotated[str, _said(ABOUT["since"])] | UnsetType = UNSET
    until: Annotated[str, _said(ABOUT["until"])] | UnsetType = UNSET
    half_life: Annotated[str, _said(ABOUT["half_life"])] | UnsetType = UNSET
    now: Annotated[str, _said(ABOUT["now"])] | UnsetType = UNSET


class EventsQuery(Struct, forbid_unknown_fields=True):
    after: Annotated[str, _said("Go on after the event with this id.")] = ""
    recent: Annotated[int, _said("Begin with so many of the events before.", ge=0, le=RING)] = 0


class NeighborhoodQuery(Struct):
    limit: Annotated[int, _said("The most neighbours.", ge=1, le=MOST_SHOWN)] = 50


# Answers -------------------------------------------------------------------------------------


class Stamped(Struct, forbid_unknown_fields=True):
    version: Annotated[int, _said("The version of the graph that all of it is of.", ge=0)]
    time: Annotated[int, _said("Its place in the stream, in ms since 1970.")]


_Weights = Annotated[
    list[float | None],
    _said("Null where there is no such edge; absent if the graph has no weights."),
]
_Times = Annotated[
    list[int | None],
    _said("When each was last changed, in ms; absent if the graph has no times."),
]


class Edges(Stamped):
    found: list[bool]
    weight: _Weights | UnsetType = UNSET
    times: _Times | UnsetType = UNSET


class Neighbors(Stamped):
    indptr: Annotated[list[Count], _said("Rows indptr[i] … indptr[i + 1] - 1 answer vertex i.")]
    ids: list[Vertex]
    cursor: Annotated[str | None, _said("Asks for the next page; null: this is the last.")]
    weight: list[float | None] | UnsetType = UNSET
    times: list[int] | UnsetType = UNSET


class Degrees(Stamped):
    degree: list[Count]


class Vertices(Stamped):
    present: list[bool]


class Lag(Struct, forbid_unknown_fields=True):
    topic: str
    partition: int
    records: int


class Checkpoint(Struct, forbid_unknown_fields=True):
    number: int
    age_s: float
    bytes: int
    seconds: float


class Window(Struct, forbid_unknown_fields=True):
    width: int
    time: Literal["event", "arrival"]
    expired_before: int | None
    late: int


class Graph(Stamped, forbid_unknown_fields=False):
    title: str
    live: Annotated[bool, _said("False: a saved store, which never changes.")]
    vertices: Annotated[int, _said("Those present, when they were last counted.")]
    rows: int
    edges: int
    device: str
    directed: bool
    weighted: bool
    names: bool
    levels: int
    segments: int
    density: float
    bytes: int
    predecessors: bool | UnsetType = UNSET
    times: bool | UnsetType = UNSET
    max_hops: int | UnsetType = UNSET
    since: int | UnsetType = UNSET
    lag: list[Lag] | UnsetType = UNSET
    operations: int | UnsetType = UNSET
    batches: int | UnsetType = UNSET
    queries: int | UnsetType = UNSET
    dead_letters: dict[str, int] | UnsetType = UNSET
    checkpoint: Checkpoint | UnsetType | None = UNSET
    window: Window | UnsetType | None = UNSET
    expired: Annotated[int, _said("Edges that expired since the stream began.")] | UnsetType = UNSET


class Written(Struct):
    topic: str
    partition: int
    offset: int | None
    operations: int
    last: int | UnsetType | None = UNSET
    version: int | UnsetType = UNSET
    repeated: (
        Annotated[bool, _said("Whether it was dropped: its source had sent a seq as high before.")]
        | UnsetType
    ) = UNSET


class Run(Struct):
    algorithm: str
    version: int
    seconds: float
    time: int | UnsetType = UNSET
    vertices: int | UnsetType = UNSET
    edges: int | UnsetType = UNSET
    summary: dict[str, Any] | UnsetType = UNSET


class Problem(Struct):
    """RFC 9457. `detail` says which field is wrong and what to do."""

    type: Annotated[
        str,
        _said("about:blank, or urn:lpma:hops, unsupported, too-large, deadline or maybe-written."),
    ]
    title: str
    status: int
    detail: str


# Reading -------------------------------------------------------------------------------------

_PLACE = re.compile(r"(?P<said>.*?)(?: - at `\$\.?(?P<place>.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")


def parameters(query: bytes, kind: type[Message]) -> Message:
    """The parameters of a URL. Raises RecordError for one that is wrong, not known or twice."""
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=32
        )
    except ValueError:
        raise RecordError(
            "the parameters are malformed: name=value, percent-encoded UTF-8"
        ) from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RecordError("a parameter appears twice: give each once")
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise refused(error, kind) from None


def refused(error: msgspec.ValidationError, kind: type[Struct]) -> RecordError:
    """What a client is told about a value of the wrong type or out of bounds."""
    text = str(error)
    known = ", ".join(kind.__struct_fields__) or "none"
    if found := _UNKNOWN.fullmatch(text):
        return RecordError(f"unknown field {found['name'][:64]!r}: known are {known}")
    if found := _MISSING.fullmatch(text):
        return RecordError(f"{found['name']}: is missing")
    match = _PLACE.fullmatch(text)
    assert match is not None
    said = match["said"].replace("`", "")[:200]
    said = said[:1].lower() + said[1:]
    if said.startswith("invalid enum value"):
        words = _words(get_type_hints(kind).get(match["place"] or ""))
        said += f": expected {' or '.join(words)}" if words else ""
    if match["place"] is None and said.startswith("expected"):
        return RecordError(f"a body is one object of {known}: {said}", "malformed")
    return RecordError(f"{match['place'] or 'a field'}: {said}")


def _words(hint: Any) -> list[str]:
    """The words that a field of this type may have."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [word for part in get_args(hint) for word in _words(part)]
