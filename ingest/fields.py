"""The one mapping of fields: which field of a row is its source, its target, its weight and so on.

A record of a topic and a line of a file hold the same thing, rows with fields, so one mapping
serves both. In a topic a field goes by its name, or by a dotted path where objects nest; a field
whose own name has the dots comes before the path. In a file it may be a column's number, from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias, cast, get_args

import msgspec
from msgspec.structs import force_setattr, replace

from .errors import PipelineError, RecordError
from .formats.kinds import OF_OTHERS, ROW_FIELDS, UPDATE_KINDS
from .formats.msgpack import number

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
    kinds: what words mean, as {"follow": "append", "unfollow": "delete"}; others mean themselves.
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
    numbers = {str(int(kind)): name for name, kind in UPDATE_KINDS.items()}
    found = {"insert": "append", **numbers}.get(word.lower(), word.lower())
    if found not in UPDATE_KINDS:
        expected = f"expected one of {', '.join(UPDATE_KINDS)}"
        raise FieldsError(f"{said}: {word!r}: {expected}", field)
    return found


# How a stream's records are read -------------------------------------------------------------

TopicRecords: TypeAlias = Literal["msgpack"] | Fields
Records: TypeAlias = TopicRecords | Mapping[str, TopicRecords]  # by topic; others are msgpack


def checked_records(records: Any) -> Records:
    """How records are read, with what is not said of fields in place. Raises PipelineError."""
    if isinstance(records, Fields):
        return records.of_topic()
    if isinstance(records, Mapping):
        checked = {topic: checked_records(of_topic) for topic, of_topic in records.items()}
        if not any(isinstance(of_topic, Mapping) for of_topic in checked.values()):
            return cast(Records, checked)
    elif records == "msgpack":
        return "msgpack"
    raise PipelineError(
        f"records is {records!r}: expected 'msgpack', Fields(…), or one of them by topic"
    )


def fields_of(records: Records, topic: str) -> Fields | None:
    """The mapping of the records of `topic`; None if all are in our own forms."""
    found = records.get(topic, "msgpack") if isinstance(records, Mapping) else records
    return found if isinstance(found, Fields) else None


def records_to_json(records: Records) -> Any:
    """As checkpoints keep it."""
    if isinstance(records, Mapping):
        return {"topics": {topic: records_to_json(each) for topic, each in records.items()}}
    return records.to_json() if isinstance(records, Fields) else records


def records_from_json(content: Any) -> Any:
    """What `records_to_json` gave."""
    if not isinstance(content, dict):
        return content
    if "topics" in content:
        by_topic = content["topics"].items()
        return {topic: records_from_json(each) for topic, each in by_topic}
    return Fields.from_json(content)
