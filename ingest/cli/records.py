"""How records of a log are read: the options of `lpma ingest` about JSON, names and lateness."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from .options import MappedIds, given


class Late(StrEnum):
    apply = "apply"
    dead_letter = "dead-letter"
    reject = "reject"


class UpdateKind(StrEnum):
    append = "append"
    delete = "delete"
    add_vertex = "add_vertex"
    remove_vertex = "remove_vertex"


def _option(name: str, help: str, min: int | None = None) -> Any:
    return typer.Option(
        name, help=help, min=min, rich_help_panel="The records of a log", show_default=False
    )


@dataclass(frozen=True)
class Records:
    """What None means stands in the pipeline's settings."""

    src_field: Annotated[
        str | None, _option("--src-field", "Records are JSON; the source is in this field.")
    ] = None
    dst_field: Annotated[
        str | None, _option("--dst-field", "Records are JSON; the target is in this field.")
    ] = None
    weight_field: Annotated[str | None, _option("--weight-field", "The weight, in JSON.")] = None
    time_field: Annotated[str | None, _option("--time-field", "The event time, in JSON.")] = None
    kind_field: Annotated[
        str | None, _option("--kind-field", "The kind of operation, in JSON. (default: none)")
    ] = None
    default_weight: Annotated[
        float | None, _option("--default-weight", "Of JSON without a weight. (default: 1)")
    ] = None
    default_kind: Annotated[
        UpdateKind | None, _option("--default-kind", "Of JSON without one. (default: append)")
    ] = None
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
        from ..json_records import JsonFields

        settings = given({"ids": self.ids, "late": self.late, "max_lateness": self.max_lateness})
        json = {
            "src": self.src_field, "dst": self.dst_field, "weight": self.weight_field,
            "time": self.time_field, "kind": self.kind_field,
            "default_weight": self.default_weight, "default_kind": self.default_kind,
        }  # fmt: skip
        if fields := given(json):
            settings["records"] = JsonFields(**fields)
        return settings
