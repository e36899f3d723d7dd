"""The options that say how a file of edges is read. What is not said is guessed, and said on the
screen before the file is read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SourceError
from ._config import in_file
from ._options import FILE, Ids

if TYPE_CHECKING:
    from ..fields import Fields
    from ..sources.files.reading import Asked


def column_option(*names: str, help: str) -> Any:
    return typer.Option(
        *names, metavar="COLUMN", help=help, rich_help_panel=FILE, show_default=False
    )


def _file_option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=FILE, show_default=False, **more)


class TimeUnit(StrEnum):
    """What times count; auto: as their size says."""

    s = "s"
    ms = "ms"
    us = "us"
    ns = "ns"
    auto = "auto"


_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "blank": " ",
               "blanks": " ", "space": " "}  # fmt: skip


@in_file(
    source_column="file.source", target_column="file.target", weight_column="file.weight",
    time_column="file.time", header="file.header", separator="file.separator",
    columns="file.columns", names="records.names", kind_column="file.kind",
    kind_map="file.kind_map", decimal="file.decimal", thousands="file.thousands",
    time_unit="file.time_unit", format="file.format", bipartite="file.bipartite",
)  # fmt: skip
@dataclass(frozen=True)
class FileOptions:
    """How a file of edges is read; None: guess."""

    source_column: Annotated[
        str | None,
        column_option(
            "--source", "--source-column",
            help="The column that edges begin at, by its name or its number from 1.",
        ),
    ] = None  # fmt: skip
    target_column: Annotated[
        str | None,
        column_option("--target", "--target-column", help="The column that edges end at."),
    ] = None
    weight_column: Annotated[
        str | None,
        column_option(
            "--weight", "--weight-column", help="The column of weights; none: do not read weights."
        ),
    ] = None
    time_column: Annotated[
        str | None,
        column_option(
            "--time", "--time-column",
            help="The column of times: integers, which stay as they are without --time-unit, or "
            "dates of ISO 8601, which become ms since 1970; none: do not read times.",
        ),
    ] = None  # fmt: skip
    kind_column: Annotated[
        str | None,
        column_option(
            "--kind", "--kind-column",
            help="The column that says what a row does: append or insert, delete, add_vertex, "
            "remove_vertex, or their numbers 0 to 3. It is never guessed.",
        ),
    ] = None  # fmt: skip
    kind_map: Annotated[
        str | None,
        _file_option(
            "--kind-map", metavar="WORD=KIND,…",
            help="What the words of that column mean, as in follow=insert,unfollow=delete.",
        ),
    ] = None  # fmt: skip
    time_unit: Annotated[
        TimeUnit | None,
        _file_option(
            "--time-unit", help="What times that are numbers count, to be read as milliseconds."
        ),
    ] = None
    decimal: Annotated[
        str | None,
        _file_option("--decimal", metavar="CHARACTER", help="The decimal mark of weights."),
    ] = None
    thousands: Annotated[
        str | None,
        _file_option("--thousands", metavar="CHARACTER", help="The mark between thousands."),
    ] = None
    header: Annotated[
        bool | None,
        _file_option("--header/--no-header", help="Whether the first line names the columns."),
    ] = None
    separator: Annotated[
        str | None,
        _file_option(
            "--separator", metavar="CHARACTER",
            help="What stands between fields: a character, or tab or blank.",
        ),
    ] = None  # fmt: skip
    names: Annotated[
        bool | None,
        _file_option(
            "--names/--no-names",
            help="Whether vertices go by names, which are text or integers of 64 bits; if not, by "
            "numbers from 0 to 4294967294.",
        ),
    ] = None
    columns: Annotated[
        str | None,
        _file_option(
            "--columns",
            help="All columns of a text file in order, such as 'src dst - time' ('-' skips one).",
        ),
    ] = None
    format: Annotated[
        str | None,
        _file_option(
            "--format", metavar="FORMAT",
            help="What the file is: text, csv, tsv, jsonl, mtx, metis, dimacs, edgelist, graphml, "
            "gexf, gml, pajek, parquet or npz. (default: by its content, then by its name)",
        ),
    ] = None  # fmt: skip
    bipartite: Annotated[
        bool | None,
        _file_option(
            "--bipartite/--no-bipartite",
            help="Whether sources and targets are two kinds of vertices: 5 and 5 are two.",
        ),
    ] = None
    ids: Annotated[
        Ids | None,
        _file_option("--ids", help="mapped is --names, dense --no-names (until the next release)."),
    ] = None

    @cached_property
    def by_name(self) -> bool | None:
        """Whether vertices go by names, if that was said. Raises typer.BadParameter."""
        if self.ids is None:
            return self.names
        by_ids = self.ids is Ids.mapped
        if self.names is not None and self.names != by_ids:
            raise typer.BadParameter("says the contrary of --ids", param_hint="--names")
        word = "--names" if by_ids else "--no-names"
        typer.echo(f"lpma: --ids goes with the next release: say {word}", err=True)
        return by_ids

    def asked(self) -> Asked:
        """What was said. Raises typer.BadParameter."""
        from ..sources.files.reading import Asked

        separator = self.separator and _SEPARATORS.get(self.separator.lower(), self.separator)
        if separator is not None and (len(separator) != 1 or not separator.isascii()):
            raise typer.BadParameter(
                f"{self.separator!r}: one character of ASCII, tab or blank",
                param_hint="--separator",
            )
        # Until the next release, --weight may also say the type of a graph's weights.
        weight = None if self.weight_column in ("float32", "float64") else self.weight_column
        named = (self.source_column, self.target_column, weight, self.time_column)
        if self.columns is not None and any(
            name is not None for name in (*named, self.kind_column)
        ):
            raise typer.BadParameter(
                "says all columns: without it, --source, --target, --weight, --time and --kind do",
                param_hint="--columns",
            )
        try:
            return Asked(
                *named, self.header, separator, self.by_name, self.columns, kind=self.kind_column,
                kinds=self._kinds(), decimal=self.decimal, thousands=self.thousands,
                time_unit=None if self.time_unit is None else self.time_unit.value,
                bipartite=self.bipartite,
            )  # fmt: skip
        except SourceError as error:
            raise typer.BadParameter(str(error), param_hint="--decimal, --thousands") from error

    def _kinds(self) -> dict[str, str]:
        pairs = [pair.partition("=") for pair in (self.kind_map or "").split(",") if pair]
        if not all(word and kind for word, _, kind in pairs):
            raise typer.BadParameter(
                f"{self.kind_map!r}: expected WORD=KIND,…, as follow=insert,unfollow=delete",
                param_hint="--kind-map",
            )
        return {word.strip(): kind.strip() for word, _, kind in pairs}

    def said(self, besides_ids: bool = False) -> str | None:
        """The first of these options that was given, for a message that it means nothing here.
        besides_ids: not counting those that say how vertices go, or a type of weights."""
        given = {
            "--source": self.source_column, "--target": self.target_column,
            "--weight": self.weight_column, "--time": self.time_column, "--header": self.header,
            "--separator": self.separator, "--names": self.names, "--columns": self.columns,
            "--kind": self.kind_column, "--kind-map": self.kind_map, "--decimal": self.decimal,
            "--thousands": self.thousands, "--time-unit": self.time_unit, "--format": self.format,
            "--bipartite": self.bipartite, "--ids": self.ids,
        }  # fmt: skip
        if besides_ids:
            del given["--names"], given["--ids"]
            if self.asked().weight is None:
                del given["--weight"]
        return next((option for option, value in given.items() if value is not None), None)


AcceptBad = Annotated[
    float | None,
    typer.Option(
        "--accept-bad", min=0, max=1, metavar="SHARE", show_default=False, rich_help_panel=FILE,
        help="Go on where up to this share of a file's rows is left out. (default: 0.01, or ten)",
    ),
]  # fmt: skip


def check_json_fields(path: Path, json: Fields | None) -> None:
    """Refuse fields of JSON for a file of another kind. Raises typer.BadParameter."""
    from ..sources.files.recognition import format_of

    if json is not None and path.is_file() and format_of(path) != "jsonl":
        raise typer.BadParameter(
            f"{path}: fields are for JSON lines, an object a line; for other files, --source and "
            "--target say which column is which (.jsonl)",
            param_hint="--src-field and others",
        )
