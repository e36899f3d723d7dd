"""Runs cases under the recorder: `python -m powercut.child '[[case, directory, mutant], …]'`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from . import CASES
from .mutants import OTHERS, watch_places
from .trace import recording


def main() -> None:
    jobs = json.loads(sys.argv[1])
    (mutant,) = {mutant for _, _, mutant in jobs}
    if mutant in OTHERS:
        OTHERS[mutant][1]()
    passed = watch_places(skipped=mutant)
    for name, place, _ in jobs:
        directory = Path(place)
        passed.clear()
        with recording(directory / "disk", directory / "trace"):
            CASES[name].run(directory, directory / "disk")
        (directory / "places").write_text(json.dumps(passed))


if __name__ == "__main__":
    main()
