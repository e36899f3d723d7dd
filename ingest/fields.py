"""The one mapping of fields: which field of a row is its source, its target, its weight and so on.

A record of a topic and a line of a file hold the same thing, rows with fields, so one mapping
serves both. In a topic a field goes by its name, or by a dotted path where objects nest; a field
whose own name has the dots comes before the path. In a file it may be a column's number, from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self, TypeAlias, cast, get_args

import msgspec
from msgspec.structs import force_setattr, replace

from .errors import PipelineError, RecordError
from .formats.kinds import OF_OTHERS, ROW_FIELDS, UPDATE_KINDS, word_of
from .formats.msgpack import number
from .types import QUERIES

Field = str | int  # by its name or dotted path, or, in a file, a column's number from 1
TimeUnit = Literal["s", "ms", "us", "ns", "auto"]

NONE = "none"  # as a field: do not read it, even where a guess would find it
UNITS = get_args(TimeUnit)
_NAMED = ("source", "target", "weight", "time", "kind", "producer", "seq")
_KEPT = {"source": "src", "target": "dst"}  # by the names that checkpoints have for them
_ROLES = {**_KEPT, "producer": "source"}  # and records


class FieldsError(PipelineError, ValueError):
    """A mapping of fields makes no sense; `field`: the one of its fields that does not, "" if
    several do not fit together."""

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


class Fields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which field of a row means what; the others are ignored, whatever they hold. None: in a topic
    `src` and `dst`, and no such field of the others; in a file a guess, but never of a kind.
    Raises PipelineError.

    producer, seq: who sent a record, and its number, so that one sent again is dropped.
    time_unit: of times that are integers: "s", "ms", "us" or "ns", and "auto" in files; None: they
    stay as they are. Dates of ISO 8601 become ms, as do times of any other unit, in whatever form
    the records of a topic come.
    kinds: what words mean, as {"follow": "append", "rated": "set"}; others mean themselves.
    default_weight, default_kind: of records without such a field.

    >>> fields = ingest.Fields("user", "item", weight="stars")
    >>> ingest.decode_record(b'{"user": 1, "item": 2, "stars": 4.5}', fields=fields).batch.weight
    array([4.5])
    """

    source: Field | None = None
    target: Field | None = None
    weight: Field | None = None
    time: Field | None = None
    kind: Field | None = None
    producer: str | None = None
    seq: str | None = None
    time_unit: TimeUnit | None = None
    kinds: dict[str, str] = {}
    default_weight: float = 1.0
    default_kind: str = "append"

    def __post_init__(self) -> None:
        named = [name for name in self.named().values() if name != NONE]
        for role, name in self.named().items():
            if type(name) is not int and not (isinstance(name, str) and name):
                raise FieldsError(f"{role} is {name!r}: expected the name of a field", role)
        if len(set(named)) != len(named):
            raise FieldsError(f"fields {named}: each must have a name of its own")
        if (self.producer is None) != (self.seq is None):
            raise FieldsError("producer and seq: name both fields, or neither")
        if self.time_unit not in (None, *UNITS):
            expected = f"expected {', '.join(UNITS)}"
            raise FieldsError(f"time_unit is {self.time_unit!r}: {expected}", "time_unit")
        kinds = {k: _kind(k, word, "kinds") for k, word in self.kinds.items()}
        force_setattr(self, "kinds", kinds)
        kind = _kind("default_kind", self.default_kind, "default_kind")
        force_setattr(self, "default_kind", kind)
        try:
            number(self.default_weight, "default_weight")
        except RecordError as error:
            raise FieldsError(str(error), "default_weight") from None

    def named(self) -> dict[str, Any]:
        """The fields that are said, by role."""
        return {role: name for role in _NAMED if (name := getattr(self, role)) is not None}

    @property
    def has_defaults(self) -> bool:
        """Whether rows without a weight, or without a kind, have another than usual."""
        return self.default_weight != 1 or self.default_kind != "append"

    def of_topic(self) -> Self:
        """With what None means in a topic. Raises FieldsError for what only files have."""
        for role, name in self.named().items():
            if type(name) is int:
                raise FieldsError(
                    f"{role} is {name}: columns have numbers in files; name a field of the records",
                    role,
                )
        if self.time_unit == "auto":
            raise FieldsError(
                "time_unit is 'auto': a stream declares its unit, so that a replay reads the same",
                "time_unit",
            )
        optional = {
            role: None if getattr(self, role) == NONE else getattr(self, role)
            for role in ("weight", "time", "kind")
        }
        return replace(
            self, source=self.source or "src", target=self.target or "dst",
            time_unit=self.time_unit or "ms", **optional,
        )  # fmt: skip

    def by_role(self) -> dict[str, str | None]:
        """Role, as records name it → the field that has it, None where none does. REQUIRES: these
        are fields `of_topic`."""
        return {_ROLES.get(role, role): getattr(self, role) for role in _NAMED}

    @property
    def ends_are_ours(self) -> bool:
        """Whether source and target go by the names that our own rows have for them."""
        return (self.source, self.target) == ("src", "dst")

    def by_role_of_maps(self) -> dict[str, str | None]:
        """The same of maps of msgpack: where the ends go by our own names, the other fields that
        are not named do, too."""
        roles = self.by_role()
        taken = set(roles.values())
        ours = {role for role in roles if self.ends_are_ours and role not in taken}
        ours -= {"source", "seq"} if len(ours & {"source", "seq"}) == 1 else set()
        return {role: name or (role if role in ours else None) for role, name in roles.items()}

    def foreign(self) -> set[str]:
        """The fields that rows of ours do not have."""
        return {name for name in self.by_role().values() if name is not None} - ROW_FIELDS

    def of_others(self) -> frozenset[str]:
        """The fields by which a map of msgpack is no row: the mapping does not name them."""
        return OF_OTHERS - {name.partition(".")[0] for name in self.foreign()}

    def to_json(self) -> dict[str, Any]:
        """As a checkpoint keeps it; what it did not always keep is there only where it is said."""
        content = {_KEPT.get(name, name): getattr(self, name) for name in self.__struct_fields__}
        added: dict[str, Any] = {"producer": None, "seq": None, "time_unit": None, "kinds": {}}
        return {name: v for name, v in content.items() if name not in added or v != added[name]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        return cls(**{name: content[kept] for name in cls.__struct_fields__
                      if (kept := _KEPT.get(name, name)) in content})  # fmt: skip


def kinds_of_text(text: str) -> dict[str, str]:
    """`Fields.kinds` of WORD=KIND,…, as a command line has it. Raises FieldsError."""
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if not all(word and kind for word, _, kind in pairs):
        expected = "expected WORD=KIND,…, as follow=insert,unfollow=delete"
        raise FieldsError(f"{text!r}: {expected}", "kinds")
    return {word.strip(): kind.strip() for word, _, kind in pairs}


def _kind(said: str, word: str, field: str) -> str:
    """The word of records for `word`, or for a number of `lpma.Kind`. Raises FieldsError."""
    found: str = word_of(word)
    if found not in UPDATE_KINDS:
        expected = f"expected one of {', '.join(UPDATE_KINDS)}"
        raise FieldsError(f"{said}: {word!r}: {expected}", field)
    return found


# Tables as Debezium tells their changes --------------------------------------------------------

OnTombstone = Literal["ignore", "delete"]
OnRepeat = Literal["last", "sum"]


class Debezium(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic of change events of Debezium: the graph holds an edge for each row of the table, or,
    with the default kind "add_vertex", a vertex. Raises PipelineError.

    fields: which column is what; None of weight: 1. time may also be "ts_ms" or "source.ts_ms" of
    the event, or the same in us and ns. An event says by itself what it does, and has no kind.
    on_tombstone: what a record without a value does to the row of its key: "ignore", since a
    deletion was told before, or "delete", where compaction or a transform leaves nothing else.
    on_repeat: what several rows with the same ends mean: "last", the edge is as the last change of
    one of them left it; "sum", its weight is the sum over the rows, which are remembered by their
    keys. None: there are none, which holds in a directed graph where the table's key lies within
    the ends; elsewhere records are refused.

    >>> table = ingest.Debezium(ingest.Fields("follower", "followee", time="source.ts_ms"))
    >>> log = ingest.SqliteLog("log")
    >>> key = b'{"follower": 1, "followee": 2}'
    >>> event = b'{"op": "c", "before": null, "after": {"follower": 1, "followee": 2}}'
    >>> _ = log.produce("updates", event, key=key)
    >>> with ingest.Pipeline(log, lpma.Graph(device="cpu"), records=table) as pipeline:
    ...     _ = pipeline.run("end")
    ...     pipeline.graph.has_edge(1, 2)
    True
    """

    fields: Fields = Fields()
    on_tombstone: OnTombstone = "ignore"
    on_repeat: OnRepeat | None = None

    def __post_init__(self) -> None:
        for name, kind in (("on_tombstone", OnTombstone), ("on_repeat", OnRepeat)):
            value = getattr(self, name)
            if value not in get_args(kind) and (name, value) != ("on_repeat", None):
                known = ", ".join(get_args(kind))
                raise PipelineError(f"{name} is {value!r}: expected one of {known}")
        fields = self.fields
        if fields.kind is not None or fields.kinds or fields.producer is not None:
            raise PipelineError(
                "a change event says its kind itself, and has no producer: leave out kind, kinds, "
                "producer and seq"
            )
        if fields.default_kind not in ("append", "add_vertex"):
            raise PipelineError(
                f"default_kind is {fields.default_kind!r}: a row of a table is an edge, or, with "
                "'add_vertex', a vertex"
            )
        if self.on_repeat is not None and self.are_vertices:
            raise PipelineError("on_repeat says what edges are, and these rows are vertices")

    @property
    def are_vertices(self) -> bool:
        """Whether the rows of the table are vertices."""
        return self.fields.default_kind == "add_vertex"

    def of_topic(self) -> Self:
        """With what None means in a topic. Raises PipelineError for what only files have."""
        return replace(self, fields=self.fields.of_topic())

    def to_json(self) -> dict[str, Any]:
        """As a checkpoint keeps it."""
        return {
            "debezium": self.fields.to_json(), "on_tombstone": self.on_tombstone,
            "on_repeat": self.on_repeat,
        }  # fmt: skip

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        fields = Fields.from_json(content["debezium"])
        return cls(fields, content["on_tombstone"], content["on_repeat"])


# How a stream's records are read -------------------------------------------------------------

TopicRecords: TypeAlias = Literal["msgpack"] | Fields | Debezium
Records: TypeAlias = TopicRecords | Mapping[str, TopicRecords]  # by topic; others are msgpack


def checked_records(records: Any) -> Records:
    """How records are read, with what is not said of fields in place. Raises PipelineError."""
    if isinstance(records, Fields | Debezium):
        return records.of_topic()
    if isinstance(records, Mapping):
        checked = {topic: checked_records(of_topic) for topic, of_topic in records.items()}
        if not any(isinstance(of_topic, Mapping) for of_topic in checked.values()):
            return cast(Records, checked)
    elif records == "msgpack":
        return "msgpack"
    raise PipelineError(
        f"records is {records!r}: expected 'msgpack', Fields(…), Debezium(…), or one of them by "
        "topic"
    )


def records_of(records: Records, topic: str) -> TopicRecords:
    """How the records of `topic` are read."""
    return records.get(topic, "msgpack") if isinstance(records, Mapping) else records


def fields_of(records: Records, topic: str) -> Fields | None:
    """The mapping of the records of `topic`; None if all are in our own forms."""
    found = records_of(records, topic)
    return found if isinstance(found, Fields) else None


def remembers_rows(records: Records) -> bool:
    """Whether the rows of a table are remembered, for their sums."""
    every = records.values() if isinstance(records, Mapping) else (records,)
    return any(isinstance(each, Debezium) and each.on_repeat == "sum" for each in every)


def mapping_of(records: Records, topic: str) -> Fields | None:
    """The mapping of the records of `topic`, or of the columns of its table; None: its records are
    in our own forms."""
    found = records_of(records, topic)
    if isinstance(found, Debezium):
        return found.fields
    return found if isinstance(found, Fields) else None


def shares_sums(records: Records, topics: Iterable[str]) -> tuple[list[str], list[str]]:
    """Of these topics those whose rows are summed up; and the others that write edges, which may be
    the same ones."""
    summed, others = [], []
    for topic in sorted(set(topics) - {QUERIES}):
        found = records_of(records, topic)
        if isinstance(found, Debezium) and found.on_repeat == "sum":
            summed.append(topic)
        elif (mapping_of(records, topic) or Fields()).default_kind != "add_vertex":
            others.append(topic)
    return summed, others


def records_to_json(records: Records) -> Any:
    """As checkpoints keep it."""
    if isinstance(records, Mapping):
        return {"topics": {topic: records_to_json(each) for topic, each in records.items()}}
    return records.to_json() if isinstance(records, Fields | Debezium) else records


def records_from_json(content: Any) -> Any:
    """What `records_to_json` gave."""
    if not isinstance(content, dict):
        return content
    if "topics" in content:
        by_topic = content["topics"].items()
        return {topic: records_from_json(each) for topic, each in by_topic}
    return (Debezium if "debezium" in content else Fields).from_json(content)


def differences(before: Any, now: Any, prefix: str = "") -> list[str]:
    """What two ways of reading records differ in, in words, if they are of one kind."""
    if isinstance(before, Mapping) and isinstance(now, Mapping) and before.keys() == now.keys():
        pairs = [(f"{topic}: ", before[topic], now[topic]) for topic in before]
        return [each for topic, then, value in pairs for each in differences(then, value, topic)]
    if type(before) is not type(now) or not isinstance(before, Fields | Debezium):
        return [f"{prefix}was {before!r}, now {now!r}"] if prefix and before != now else []
    found = []
    for name in before.__struct_fields__:
        then, value = getattr(before, name), getattr(now, name)
        if isinstance(then, Fields):
            found += differences(then, value, prefix)
        elif then != value:
            found.append(f"{prefix}{name} was {then!r}, now {value!r}")
    return found
