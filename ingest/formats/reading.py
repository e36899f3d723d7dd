"""How a stream's records become operations: what a replay must know to do the same again.

A checkpoint keeps it, and a pipeline that resumes reads on as the checkpoint says. So these
settings are chosen once, when the pipeline is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

from ..errors import PipelineError
from ..lateness import Late
from .codec import decode_record
from .json import JsonFields
from .records import Ids, Record


@dataclass(frozen=True)
class Reading:
    """Raises PipelineError where it makes no sense."""

    records: Literal["msgpack"] | JsonFields = "msgpack"  # updates; queries are msgpack always
    ids: Ids = "dense"  # "mapped": vertices are named by any integer of 64 bits, or by text
    late: Late = "apply"  # what becomes of late operations: see `lateness.py`
    max_lateness: int = 0  # behind the newest event time, in its unit

    def __post_init__(self) -> None:
        if self.records != "msgpack" and not isinstance(self.records, JsonFields):
            raise PipelineError(f"records is {self.records!r}: expected 'msgpack' or JsonFields(…)")
        for name, known in (("ids", get_args(Ids)), ("late", get_args(Late))):
            value = getattr(self, name)
            if value not in known:
                raise PipelineError(f"{name} is {value!r}: expected one of {', '.join(known)}")
        if type(self.max_lateness) is not int or not 0 <= self.max_lateness < 2**63:
            raise PipelineError(f"max_lateness is {self.max_lateness!r}: expected 0 … 2^63 − 1")

    def decode(self, data: bytes) -> Record:
        """The record in `data`. Raises RecordError only."""
        json = self.records if isinstance(self.records, JsonFields) else None
        return decode_record(data, ids=self.ids, json=json)

    def of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of this reading, after a look whether any of those given differs. Raises
        PipelineError where one does."""
        kept = {field.name: getattr(self, field.name) for field in fields(Reading)}
        for name, value in kept.items():
            if name in given and given[name] != value:
                raise PipelineError(
                    f"{name} is {given[name]!r}, but the checkpoint was taken with {value!r}, "
                    "which a resume cannot change: leave it out, or start a new checkpoint"
                )
        return kept

    def to_json(self) -> dict[str, Any]:
        content = self.of({})
        if isinstance(self.records, JsonFields):
            content["records"] = self.records.to_json()
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        records = content["records"]
        if isinstance(records, dict):
            records = JsonFields(**records)
        return cls(**{**content, "records": records})
