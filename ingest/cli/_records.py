"""How records of a log are read: the options of `lpma ingest` about JSON, names and lateness."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._options import MappedIds, given

if TYPE_CHECKING:
    from ..formats.json import JsonFields


class Late(StrEnum):
    apply = "apply"
    dead_letter = "dead-letter"
    reject = "reject"


class UpdateKind(StrEnum):
    append = "append"
    delete = "delete"
    add_vertex = "add_vertex"
    remove_vertex = "remove_vertex"


def _option(
    name: str, help: str, min: int | None = None, panel: str = "The records of a log"
) -> Any:
    return typer.Option(name, help=help, min=min, rich_help_panel=panel, show_default=False)


def _json_option(name: str, help: str) -> Any:
    return _option(name, help, panel="JSON, of a log or of a .jsonl file")


@dataclass(frozen=True)
class Json:
    """Which fields of JSON mean what. What None means stands in `JsonFields`."""

    src_field: Annotated[
        str | None, _json_option("--src-field", "The source is in this field.")
    ] = None
    dst_field: Annotated[
        str | None, _json_option("--dst-field", "The target is in this field.")
    ] = None
    weight_field: Annotated[str | None, _json_option("--weight-field", "The weight, in JSON.")] = (
        None
    )
    time_field: Annotated[str | None, _json_option("--time-field", "The event time, in JSON.")] = (
        None
    )
    kind_field: Annotated[
        str | None, _json_option("--kind-field", "The kind of operation, in JSON. (default: none)")
    ] = None
    default_weight: Annotated[
        float | None, _json_option("--default-weight", "Of JSON without a weight. (default: 1)")
    ] = None
    default_kind: Annotated[
        UpdateKind | None, _json_option("--default-kind", "Of JSON without one. (default: append)")
    ] = None

    def json(self) -> JsonFields | None:
        """The fields, where any was given."""
        from ..formats.json import JsonFields

        named = {
            "src": self.src_field, "dst": self.dst_field, "weight": self.weight_field,
            "time": self.time_field, "kind": self.kind_field,
            "default_weight": self.default_weight, "default_kind": self.default_kind,
        }  # fmt: skip
        fields = given(named)
        return JsonFields(**fields) if fields else None


@dataclass(frozen=True)
class Records(Json):
    """What None means stands in the pipeline's settings."""

    ids: MappedIds = None
    late: Annotated[
        Late | None, _option("--late", "What becomes of late operations. (default: apply)")
    ] = None
    max_lateness: Annotated[
        int | None,
        _option(
            "--max-lateness",
            "How far behind the newest event time is not late, in its unit. (default: 0)",
            min=0,
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """The settings of a pipeline that were given."""
        settings = given({"ids": self.ids, "late": self.late, "max_lateness": self.max_lateness})
        fields = self.json()
        return settings if fields is None else {**settings, "records": fields}
