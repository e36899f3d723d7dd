"""`python -m benchmarks NAME ... [--quick] [--only STORE,...] [--json FILE]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from . import peers
from .report import Report, Setting, write_json
from .stores import warm_up

# In the order `all` runs them.
EXPERIMENTS = (
    "startup",
    "updates",
    "queries",
    "csr",
    "latency",
    "memory",
    "expansion",
    "redundancy",
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = [*EXPERIMENTS, "all"]
    parser.add_argument("names", nargs="+", metavar="NAME", choices=known, help=", ".join(known))
    parser.add_argument("--quick", action="store_true", help="small graphs: under a minute in all")
    parser.add_argument("--only", default="", help="stores to run, by name, with commas between")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    given = parser.parse_args(arguments)

    folder = given.json.parent if given.json else Path("bench-results")
    only = frozenset(filter(None, given.only.split(",")))
    setting = Setting(quick=given.quick, only=only, folder=folder)
    names = EXPERIMENTS if "all" in given.names else given.names
    missing = {peer.name for peer in peers.ALL} - {peer.name for peer in peers.available()}
    if missing:
        print(f"not installed, left out: {', '.join(sorted(missing))}", file=sys.stderr)
    warm_up()
    reports: list[Report] = []
    for name in names:
        start = time.perf_counter()
        module = importlib.import_module(f".experiments.{name}", __package__)
        reports.append(module.run(setting))
        print(reports[-1].text())
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", file=sys.stderr, flush=True)
    if given.json:
        write_json(given.json, reports, given.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
