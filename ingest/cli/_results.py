"""What leaves a stream: the figures that are tracked, alerts, and files for them and for the edge
feed that have no other use here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from ..errors import PipelineError


def tracked(named: str | None) -> tuple[str, ...]:
    """The figures to keep. Raises typer.BadParameter on one that is none."""
    from ..results.figures import check_figures

    try:
        return check_figures(tuple(filter(None, (named or "").replace(" ", "").split(","))))
    except PipelineError as error:
        raise typer.BadParameter(str(error), param_hint="--track") from error


def shared_out(
    rules: Sequence[str], track: Sequence[str], *, publishes: bool, serves: bool
) -> tuple[list[str], list[str]]:
    """The rules that leave with the results, and those for watchers of the service: a rule of a
    tracked figure is for both. Raises typer.BadParameter on one that nobody here knows.

    >>> from ingest.cli._results import shared_out
    >>> shared_out(["core > 2", "lag > 9"], ["core"], publishes=True, serves=True)
    (['core > 2'], ['core > 2', 'lag > 9'])
    """
    from ..results.figures import check_rules, figures_of, rule_of
    from ..service.sampling import NAMES

    of_results = figures_of(track) if publishes else ()
    of_service = (*NAMES, *track) if serves else ()
    known = tuple(dict.fromkeys([*of_results, *of_service]))
    if rules and not known:
        raise typer.BadParameter(
            "an alert is told to watchers of --serve, or leaves with the results: give --track "
            "and --results-topic or --results-file",
            param_hint="--alert",
        )
    try:
        names = {text: rule_of(text, known, "'core >= 20' or 'lag > 1000'").name for text in rules}
        leaving = [text for text, name in names.items() if name in of_results]
        check_rules(leaving, track)
    except PipelineError as error:
        raise typer.BadParameter(str(error), param_hint="--alert") from error
    return leaving, [text for text, name in names.items() if name in of_service]


def check_file(
    what: str, file: Path, used: Sequence[tuple[str, Path | None]], checkpoint: Path | None
) -> None:
    """Raise typer.BadParameter if the file of results, or of changes, is `used` for something else,
    SourceError if it can hold none."""
    from ..results.forms import CHANGES, RESULTS
    from ..results.sinks import check_holds

    real = Path(os.path.realpath(file))
    for use, path in used:
        if path is not None and (
            real == Path(os.path.realpath(path))
            or (file.exists() and path.exists() and os.path.samefile(file, path))
        ):
            raise typer.BadParameter(
                f"{file} is {use}: name another file", param_hint=f"--{what}-file"
            )
    if checkpoint is not None and Path(os.path.realpath(checkpoint)) in (real, *real.parents):
        raise typer.BadParameter(
            f"{file} lies in the directory of --checkpoint: name a file elsewhere",
            param_hint=f"--{what}-file",
        )
    check_holds(file, RESULTS if what == "results" else CHANGES)
