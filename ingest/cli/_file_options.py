"""The options that say which field of a record, or column of a file, means what, and how a file of
edges is read. What is not said of a file is guessed, and said on the screen before it is read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from ..errors import SourceError
from ..fields import TimeUnit
from ..types import Ids
from ._completion import columns
from ._options import UpdateKind, WeightType, given
from ._typer import option

if TYPE_CHECKING:
    from ..fields import Fields
    from ..sources.files.reading import Asked

FIELDS = "Which field or column is what"
FILE = "The edge file"
DEBEZIUM = "debezium"  # as a format
_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "blank": " ",
               "blanks": " ", "space": " "}  # fmt: skip

_column = partial(option, metavar="FIELD", panel=FIELDS, autocompletion=columns)
_field_option = partial(option, panel=FIELDS)
_file_option = partial(option, panel=FILE)


@dataclass(frozen=True)
class FieldOptions:
    """Which field of JSON, or column of a file, means what; None: as `Fields` has it."""

    source_column: str | None = _column(
        "fields.source", "--source",
        help="The field that edges begin at: its name or dotted path, or a column's number from 1.",
    )  # fmt: skip
    target_column: str | None = _column(
        "fields.target", "--target", help="The field that edges end at."
    )
    weight_column: str | None = _column(
        "fields.weight", "--weight", help="The field of weights; none: do not read weights."
    )
    time_column: str | None = _column(
        "fields.time", "--time",
        help="The field of times: integers, in ms or in --time-unit, or dates of ISO 8601, which "
        "become ms since 1970; none: do not read times.",
    )  # fmt: skip
    kind_column: str | None = _column(
        "fields.kind", "--kind",
        help="The field with the kind of operation: append or insert, delete, set, add_vertex, "
        "remove_vertex, or their numbers 0, 1, 11, 2 and 3. It is never guessed.",
    )  # fmt: skip
    kind_map: str | None = _field_option(
        "fields.kinds", "--kind-map", metavar="WORD=KIND,…", in_file=str | dict[str, str] | None,
        help="What the words of that field mean, such as a=insert,b=delete.",
    )  # fmt: skip
    time_unit: TimeUnit | None = _field_option(
        "fields.time_unit", "--time-unit",
        help="The unit of numeric times; they are converted to milliseconds.",
    )  # fmt: skip
    default_weight: float | None = _field_option(
        "fields.default_weight", "--default-weight",
        help="The weight of JSON without one. (default: 1)",
    )  # fmt: skip
    default_kind: UpdateKind | None = _field_option(
        "fields.default_kind", "--default-kind",
        help="The kind of JSON without one. (default: append)",
    )  # fmt: skip
    names: bool | None = _field_option(
        "records.names", "--names/--no-names",
        help="Whether vertices go by names, which are text or integers of 64 bits; if not, by "
        "numbers from 0 to 4294967294.",
    )  # fmt: skip
    ids: Ids | None = _field_option(
        "--ids", help="mapped is --names, dense --no-names (until the next release)."
    )

    @cached_property
    def by_name(self) -> bool | None:
        """Whether vertices go by names, if that was said. Raises typer.BadParameter."""
        if self.ids is None:
            return self.names
        by_ids = self.ids == "mapped"
        if self.names is not None and self.names != by_ids:
            raise typer.BadParameter("says the contrary of --ids", param_hint="--names")
        word = "--names" if by_ids else "--no-names"
        typer.echo(f"lpma: --ids goes with the next release: say {word}", err=True)
        return by_ids

    def of_records(self) -> dict[str, Any]:
        """The settings that were given of how records, or lines of JSON, are read."""
        return given({"names": self.by_name, "records": self.fields()})

    def fields(self) -> Fields | None:
        """The mapping of fields; None if nothing of it was said. Raises typer.BadParameter."""
        from ..fields import Fields, FieldsError, kinds_of_text

        # Until the next release, --weight may also say the type of a graph's weights.
        is_type = self.weight_column in get_args(WeightType)[:2]
        said = given(
            {
                "source": self.source_column, "target": self.target_column,
                "weight": None if is_type else self.weight_column, "time": self.time_column,
                "kind": self.kind_column, "time_unit": self.time_unit,
                "default_weight": self.default_weight, "default_kind": self.default_kind,
            }
        )  # fmt: skip
        kinds: Any = self.kind_map or {}  # a file may have a table
        try:
            if kinds := kinds_of_text(kinds) if isinstance(kinds, str) else kinds:
                said["kinds"] = kinds
            return Fields(**said) if said else None
        except FieldsError as error:
            option = {"": "--source and others", "kinds": "--kind-map"}.get(error.field)
            option = option or f"--{error.field.replace('_', '-')}"
            raise typer.BadParameter(str(error), param_hint=option) from error


@dataclass(frozen=True)
class FileOptions(FieldOptions):
    """How a file of edges is read; None: guess."""

    header: bool | None = _file_option(
        "file.header", "--header/--no-header", help="Whether the first line names the columns."
    )
    separator: str | None = _file_option(
        "file.separator", "--separator", metavar="CHARACTER",
        help="What separates fields: a character, or tab or blank.",
    )  # fmt: skip
    columns: str | None = _file_option(
        "file.columns", "--columns",
        help="All columns of a text file in order, such as 'src dst - time' ('-' skips one).",
    )  # fmt: skip
    decimal: str | None = _file_option(
        "file.decimal", "--decimal", metavar="CHARACTER", help="The decimal mark of weights."
    )
    thousands: str | None = _file_option(
        "file.thousands", "--thousands", metavar="CHARACTER", help="The mark between thousands."
    )
    format: str | None = _file_option(
        "file.format", "--format", metavar="FORMAT",
        help="The format of a file: text, csv, tsv, jsonl, mtx, metis, dimacs, edgelist, graphml, "
        "gexf, gml, pajek, parquet, arrow or npz (default: by its content, then by its name); or "
        "debezium, if a log's records are changes of a database table.",
    )  # fmt: skip
    bipartite: bool | None = _file_option(
        "file.bipartite", "--bipartite/--no-bipartite",
        help="Whether sources and targets are different kinds of vertices, so that source 5 is not "
        "target 5.",
    )  # fmt: skip

    def asked(self) -> Asked:
        """What was said of a file. Raises typer.BadParameter."""
        from ..fields import Fields
        from ..sources.files.reading import Asked

        separator = self.separator and _SEPARATORS.get(self.separator.lower(), self.separator)
        if separator is not None and (len(separator) != 1 or not separator.isascii()):
            raise typer.BadParameter(
                f"{self.separator!r}: one character of ASCII, tab or blank",
                param_hint="--separator",
            )
        mapping = self.fields() or Fields()
        if self.columns is not None and mapping.named():
            raise typer.BadParameter(
                "says all columns: without it, --source, --target, --weight, --time and --kind do",
                param_hint="--columns",
            )
        try:
            return Asked(
                mapping, self.header, separator, self.by_name, self.columns, self.decimal,
                self.thousands, self.bipartite,
            )  # fmt: skip
        except SourceError as error:
            raise typer.BadParameter(str(error), param_hint="--decimal, --thousands") from error

    def said(self, of_fields: bool = True) -> str | None:
        """The first of these options that was given, for a message that it means nothing here.
        of_fields: those of records count, too."""
        of_records = {each.name for each in fields(FieldOptions)}
        for each in fields(FileOptions):
            is_of_log = each.name == "format" and self.format == DEBEZIUM
            if is_of_log and not of_fields:
                continue
            if getattr(self, each.name) is not None and (of_fields or each.name not in of_records):
                return f"--{each.name.removesuffix('_column').replace('_', '-')}"
        return None


AcceptBad = Annotated[
    float | None,
    typer.Option(
        "--accept-bad", min=0, max=1, metavar="SHARE", show_default=False, rich_help_panel=FILE,
        help="Go on where up to this share of a file's rows is left out. (default: 0.01, or ten)",
    ),
]  # fmt: skip


def column_option(name: str, help: str) -> Any:
    """The option of a column under another name."""
    return _column(name, help=help)
