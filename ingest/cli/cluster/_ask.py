"""The commands that ask a cluster which `lpma cluster run` started on this host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from algorithms.options import REQUIRED

from ...errors import IngestError
from .._algorithm_options import taking
from .._console import JsonOption, emit, failing_in_one_line, format_value, show, table
from .._options import given
from .._recent import TimeOptions, reading_weights
from .._typer import Command, sharing
from ..checkpoint import format_age
from ..export import Format
from ..run._task import Out, Top, check_names, show_rows

MARGIN_S = 10.0  # that an answer may take beyond the time-out of the work itself

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="What `lpma cluster run --checkpoint` was given.")
]


def _timeout(default_s: float) -> Any:
    told = f"Give up after this long; inf: wait as long as it takes. (default: {default_s:g})"
    return typer.Option("--timeout", metavar="SECONDS", min=0.001, help=told, show_default=False)


class Algorithm(StrEnum):
    degree = "degree"
    core = "core"
    triangles = "triangles"
    components = "components"
    pagerank = "pagerank"
    bfs = "bfs"
    diversity = "diversity"


@dataclass(frozen=True)
class RunOptions(TimeOptions):
    """What is done with the result of any algorithm, and how long it may take."""

    top: Top = 5
    out: Out = None
    timeout_s: Annotated[float, _timeout(600)] = 600.0
    as_json: JsonOption = False


def _ask(directory: Path, do: str, within_s: float, **arguments: Any) -> dict[str, Any]:
    from ...cluster.control import ask

    found: dict[str, Any] = ask(directory, do, wait_s=within_s + MARGIN_S, **arguments)
    return found


@failing_in_one_line
def status(directory: Directory, as_json: JsonOption = False) -> None:
    """How the shards are: one line each.

    Exit status 1, after the report, if one of them does not run."""
    found = _ask(directory, "status", 10.0)
    if as_json:
        emit(found)
    else:
        show(found["source"], readable(found))
        show_shards(found)
    if found["state"] != "running":
        raise IngestError(f"{directory}: the cluster is starting: not every shard runs yet")
    if found["problems"]:
        raise IngestError("; ".join(found["problems"]))


@failing_in_one_line
def epoch(
    directory: Directory,
    timeout_s: Annotated[float, _timeout(30)] = 30.0,
    as_json: JsonOption = False,
) -> None:
    """Take an epoch: a state of the whole graph that has all that was written before."""
    found = _ask(directory, "epoch", timeout_s, timeout_s=timeout_s)
    if as_json:
        emit(found)
        return
    versions = ", ".join(f"{version:,}" for version in found["versions"])
    # Numbers and versions name moments: the one without commas, the others with.
    show(
        f"epoch {found['number']}",
        {
            "edges": sum(found["edges"]),
            "versions of the shards": versions,
            "age of the newest update": age_of(found["number"], found["time"]),
            "taken in": f"{found['seconds']:.3f} s",
        },
    )


def make_run_algorithm() -> Command:
    """`lpma cluster run-algorithm`, with the options of all of them."""
    from ...analyses import OPTIONS

    declared = {
        name: replace(option, default=None, description=f"{option.description} ({algorithm})")
        for algorithm in Algorithm
        for name, option in OPTIONS.get(algorithm, {}).items()
    }

    @failing_in_one_line
    @taking(declared)
    @sharing(RunOptions)
    def run_algorithm(
        directory: Directory,
        algorithm: Annotated[Algorithm, typer.Argument(help="What to compute.")],
        options: RunOptions,
        **chosen: Any,
    ) -> None:
        _run_algorithm(directory, algorithm, options, given(chosen))

    return run_algorithm


def _run_algorithm(
    directory: Path, algorithm: Algorithm, options: RunOptions, chosen: dict[str, Any]
) -> None:
    view = options.texts
    arguments, out = _arguments(algorithm, chosen), options.out
    if options.half_life is not None:
        arguments = reading_weights(algorithm.value, arguments)
    check_names(out, None, ())
    found = _ask(
        directory, "run-algorithm", options.timeout_s, algorithm=algorithm.value,
        given=arguments, top=options.top, out=None if out is None else str(out.absolute()),
        timeout_s=options.timeout_s, view=view,
    )  # fmt: skip
    rows, value = found.pop("top"), found.pop("value")
    if options.as_json:
        emit({**found, "top": rows})
        return
    del found["algorithm"]
    del found["versions"]
    facts = {name.replace("_", " "): it for name, it in found.items() if name != "time"}
    facts["epoch"] = str(found["epoch"])
    facts["age of the newest update"] = age_of(found["epoch"], found["time"])
    show(f"{algorithm} of {directory}", facts)
    show_rows(rows, value)


def _arguments(algorithm: Algorithm, chosen: dict[str, Any]) -> dict[str, Any]:
    """What the algorithm is called with. Raises typer.BadParameter on options of another one."""
    from ...analyses import OPTIONS

    takes = OPTIONS.get(algorithm, {})
    arguments = {name: option.default for name, option in takes.items()} | chosen
    for name, value in arguments.items():
        hint = f"--{name.replace('_', '-')}"
        if name not in takes:
            raise typer.BadParameter(f"{algorithm} does not take it", param_hint=hint)
        if value is REQUIRED:
            raise typer.BadParameter(f"{algorithm} needs it", param_hint=hint)
    return arguments


@failing_in_one_line
@sharing(TimeOptions)
def snapshot(
    directory: Directory,
    options: TimeOptions,
    target: Annotated[
        Path,
        typer.Argument(
            help="A new folder of Parquet files, one a shard; or a file, .parquet, .npz, .csv or "
            ".mtx, for which all edges must fit this host."
        ),
    ],
    timeout_s: Annotated[float, _timeout(600)] = 600.0,
    as_json: JsonOption = False,
) -> None:
    """Write the whole graph as of a new epoch."""
    _check_target(target)
    found = _ask(
        directory, "snapshot", timeout_s, target=str(target.absolute()), timeout_s=timeout_s,
        view=options.texts,
    )  # fmt: skip
    if as_json:
        emit(found)
        return
    rows = {"epoch": str(found["epoch"]), "rows": found["rows"], "edges": found["edges"],
            "age of the newest update": age_of(found["epoch"], found["time"]),
            "seconds": found["seconds"]}  # fmt: skip
    show(f"wrote {target}", rows)


def _check_target(target: Path) -> None:
    """Refuse a target that cannot be written, before anything is asked."""
    from lpma.file.atomic import PathError, check_writable

    known = [f".{format}" for format in get_args(Format)]
    if not target.suffix:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise PathError(f"{target}: is there already: name a new folder")
    elif target.suffix not in known:
        raise typer.BadParameter(
            f"a folder, or a file whose name ends with {', '.join(known)}", param_hint="TARGET"
        )
    else:
        check_writable(target)


# epoch, saved: how long ago the newest one was closed, the newest checkpoint taken.
HEADER = ["shard", "state", "device", "edges", "operations", "lag", "epoch", "saved",
          "restarts"]  # fmt: skip


def readable(document: dict[str, Any]) -> dict[str, Any]:
    """The facts of the whole, for `show`. document: what the action "status" returns."""
    epoch = document["epoch"]
    counted = [shard["status"] for shard in document["shards"] if shard["status"] is not None]
    return {
        "state": document["state"],
        "shards": len(document["shards"]),
        "operations": sum(status["operations"] for status in counted),
        "edges": sum(status["edges"] for status in counted),
        "age of the newest epoch": None
        if epoch is None
        else age_of(document["time"], epoch["number"]),
        "restarts": document.get("restarts", 0),
        "up for": format_age(document["seconds"]),
    }


def show_shards(document: dict[str, Any]) -> None:
    """A line for each shard, and one for what goes wrong at one that runs all the same."""
    if document["shards"]:
        table(HEADER, [_line(document["time"], shard) for shard in document["shards"]])
    for shard in document["shards"]:
        own = shard["status"] or {}
        if shard["state"] == "running" and own.get("problem"):
            print(f"shard {shard['number']}: {own['problem']}")


def _line(now: int, shard: dict[str, Any]) -> list[str]:
    own = shard["status"] or {}
    counts = [format_value(own.get(name)) for name in ("edges", "operations", "lag")]
    ages = [age_of(now, own.get(name)) for name in ("epoch", "checkpoint_time")]
    return [str(shard["number"]), shard["state"], own.get("device") or "–", *counts, *ages,
            format_value(shard["restarts"])]  # fmt: skip


def age_of(now: int, then: int | None) -> str:
    """How long ago a moment was, as "3 s". now, then: ms since 1970; then: None or 0 for never."""
    return format_age(max(0, now - then) / 1000) if then else "–"
