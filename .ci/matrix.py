"""Prints what an environment of the matrix installs: what pyproject.toml asks for, with the
service, and what the tests need. `oldest` pins each to the first release that is allowed; `newest`
leaves them open."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

# Of the extra `test`.
TOOLS = ("fastavro", "hypothesis", "igraph", "networkx", "pytest", "pytest-xdist")

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
tools = [one for one in project["optional-dependencies"]["test"]
         if re.split(r"[<>=\[]", one)[0] in TOOLS]  # fmt: skip
serve = [one.partition(";")[0] for one in project["optional-dependencies"]["serve"]]
for requirement in [*project["dependencies"], *serve, *tools]:
    if sys.argv[1] == "oldest":
        requirement = re.sub(r">=([\d.]+).*", r"==\1.*", requirement)
    print(requirement)
