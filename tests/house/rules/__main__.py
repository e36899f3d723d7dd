"""Check all rules: prints each problem on a line, and ends with 1 if there is one."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from . import imports, modules, references, systems
from .sources import of_packages

PACKAGES = ("lpma", "algorithms", "ingest")


def problems() -> Iterator[str]:
    ours, all_code = of_packages(*PACKAGES), of_packages(*PACKAGES, "benchmarks")
    yield from imports.one_way(ours)
    yield from imports.floors(ours)
    yield from imports.kernels_stay_in_the_backend(ours)
    yield from imports.circles(all_code)
    yield from modules.docstrings([*ours, *of_packages("tests")])
    yield from modules.functions(all_code)
    yield from modules.generators(ours)
    yield from modules.exports(*PACKAGES)
    yield from systems.only_linux(ours)
    yield from references.problems()


if __name__ == "__main__":
    found = list(problems())
    for line in [*modules.long_files(of_packages(*PACKAGES, "benchmarks")), *found]:
        print(line)
    print(f"the house's rules: {len(found)} problems")
    sys.exit(bool(found))
