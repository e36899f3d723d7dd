"""`lpma info`: what a store, a checkpoint or a dataset is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpma.display.words import size_of

from . import _options
from ._as_of import AsOfOptions, open_as_of
from ._completion import sources
from ._console import JsonOption, emit, failing_in_one_line, format_value, report, table
from ._targets import Opened, format_window, place_of, sides_text, store_facts
from ._typer import sharing

if TYPE_CHECKING:
    from ..datasets.catalog import Dataset


@failing_in_one_line
@sharing(AsOfOptions)
def info(
    past: AsOfOptions,
    target: Annotated[
        str | None,
        typer.Argument(
            autocompletion=sources,
            help="A saved store, a checkpoint directory, or a dataset's name.",
        ),
    ] = None,
    list_datasets: Annotated[
        bool, typer.Option("--datasets", help="List the datasets known by name.")
    ] = False,
    device: _options.ReadingDevice = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Describe a store, a checkpoint or a dataset."""
    from ..datasets.catalog import CATALOG
    from ..past.reach import reachable

    if list_datasets == (target is not None):
        raise typer.BadParameter("name one, or ask for --datasets", param_hint="TARGET")
    if target is None:
        past.check_unused("--datasets")
        _list_datasets(as_json)
        return
    if not Path(target).exists() and target in CATALOG:
        past.check_unused(target)
        document = _dataset_facts(CATALOG[target])
    else:
        opened = open_as_of(Path(target), device, past, begun=False, contents=True)
        if opened.not_begun:
            typer.echo(f"lpma: {opened.not_begun}", err=True)
        document = _store_facts(opened)
        if Path(target).is_dir():
            document["past"] = [asdict(span) for span in reachable(Path(target))]
    report(as_json, document, target, _readable(document))


def _store_facts(opened: Opened) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": "store", "path": str(opened.path)}
    if opened.checkpoint is not None:
        facts |= {"kind": "checkpoint", "begun": not opened.not_begun, **opened.checkpoint}
    return {**facts, "file_bytes": opened.path.stat().st_size, **store_facts(opened)}


def _dataset_facts(dataset: Dataset) -> dict[str, Any]:
    from .. import datasets

    found = datasets.find(dataset.name)
    return {
        "kind": "dataset",
        "name": dataset.name,
        "here": None if found is None else str(found),
        "url": dataset.url,
        "downloadable": dataset.layout != "npz",
        "shape": dataset.shape,
        "lines": dataset.edges,
        "sha256": dataset.sha256,
        "cite": dataset.citation,
    }


def _readable(document: dict[str, Any]) -> dict[str, Any]:
    from ..past.reach import Span, described, moment

    rows = dict(document)
    for name in ("file_bytes", "memory_bytes"):
        if name in rows:
            rows[name.replace("_bytes", "")] = size_of(rows.pop(name))
    if "taken_ms" in rows:
        rows["taken"] = moment(rows.pop("taken_ms"))
    if rows.get("window") is not None:
        rows["window"] = format_window(rows["window"])
    if "left" in rows:
        rows["left"] = sides_text(rows["left"], bool(rows.get("names")))
    if "accepted" in rows:
        rows["accepted"] = rows["accepted"] or None
    if "past" in rows:
        rows["past views"] = described([Span(**span) for span in rows.pop("past")])
    if results := rows.pop("results", None):
        rows["results"] = f"{results['records']:,} records of {', '.join(results['figures'])}"
        rows["alerts"] = ", ".join(results["rules"]) or None
    for place in rows.pop("positions", []):
        rows[f"offset of {place['topic']}/{place['partition']}"] = place_of(place)
    return rows


def _list_datasets(as_json: bool) -> None:
    from ..datasets.catalog import CATALOG

    documents = [_dataset_facts(dataset) for dataset in CATALOG.values()]
    if as_json:
        emit({"datasets": documents})
        return
    rows = []
    for facts in documents:
        host = facts["url"].split("/")[2]
        source = host if facts["downloadable"] else f"{host} (convert by hand)"
        here = format_value(facts["here"] is not None)
        rows.append([facts["name"], facts["shape"], format_value(facts["lines"]), here, source])
    table(["name", "shape", "lines", "here", "from"], rows)
