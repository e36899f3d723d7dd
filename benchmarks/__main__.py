"""`python -m benchmarks NAME ... [--quick] [--only STORE,...] [--json FILE] [--budget SECONDS]`.

`headline` measures the rows of docs/performance.md, and keeps them; `page` makes the page of what
is kept. Other names are experiments: the table of each is printed, and all of them, every sample
included, go to FILE, with plots beside it. `all` is every experiment on the CPU, `gpu` every one on
a CUDA device. `compare --base DIR` sets this tree beside another one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import device, experiments, machine
from .report import Report, Setting, write_json

GPU_BUDGET_S = 150.0


def main(arguments: list[str] | None = None) -> int:
    given = _given(arguments)
    names = experiments.chosen(given.names)
    on_cpu = {*experiments.ON_CPU, *experiments.ON_EITHER}
    if "headline" in names and given.device == "cpu":
        machine.keep_to_two_cores()
        on_cpu.add("headline")
    if on_cpu.intersection(names):
        _prepare_cpu()
    missing = device.why_none()
    described = machine.describe()  # before the run: the checkout may change meanwhile
    folder = given.json.parent if given.json else Path("bench-results")
    only = frozenset(filter(None, given.only.split(",")))
    reports: list[Report] = []
    skipped, asked = False, set[str]()
    for name in names:
        if name in experiments.ON_GPU and missing:
            print(f"{name}: skipped, {missing}", file=sys.stderr)
            skipped = True
            continue
        on_device = name in experiments.ON_GPU or (name in experiments.ON_EITHER and not missing)
        budget = given.budget if on_device else float("inf")
        setting = Setting(given.quick, only, folder, budget, given.base, given.device, asked)
        reports += _run(name, setting)
        if given.json:  # after each, so that what was found outlives a later failure
            write_json(given.json, reports, given.quick, described)
    unknown = only.difference(asked)
    if unknown and not skipped:
        known = (
            f"there are {', '.join(sorted(asked))}" if asked else "it has nothing to choose from"
        )
        print(f"--only: no {', '.join(sorted(unknown))}; {known}", file=sys.stderr)
        return 1
    return 0


def _given(arguments: list[str] | None) -> argparse.Namespace:
    parser = _parser()
    given = parser.parse_args(arguments)
    if "compare" not in given.names and given.base is not None:
        parser.error("--base is for compare")
    if given.device != "cpu" and not {"compare", "headline"}.intersection(given.names):
        parser.error("--device is for compare and headline")
    return given


def _parser() -> argparse.ArgumentParser:
    _, _, description = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=description)
    known = [*experiments.KNOWN, *experiments.GROUPS]
    parser.add_argument("names", nargs="+", metavar="NAME", choices=known, help=", ".join(known))
    parser.add_argument("--quick", action="store_true", help="small graphs, to see that all works")
    parser.add_argument("--only", default="", help="stores to run, by name, with commas between")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    late = "an experiment on a device begins nothing new after that many seconds"
    parser.add_argument("--budget", type=float, default=GPU_BUDGET_S, metavar="SECONDS", help=late)
    parser.add_argument("--base", type=Path, metavar="DIR", help="compare: the other tree")
    on_what = "compare, headline: on what"
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help=on_what)
    return parser


def _prepare_cpu() -> None:
    from .stores import base, peers

    missing = {peer.name for peer in peers.ALL} - {peer.name for peer in peers.available()}
    if missing:
        print(f"not installed, left out: {', '.join(sorted(missing))}", file=sys.stderr)
    base.warm_up()


def _run(name: str, setting: Setting) -> list[Report]:
    start = time.perf_counter()
    reports = experiments.run(name, setting)
    for report in reports:
        print(report.text())
    print(f"({name}: {time.perf_counter() - start:.0f} s)\n", file=sys.stderr, flush=True)
    return reports


if __name__ == "__main__":
    sys.exit(main())
