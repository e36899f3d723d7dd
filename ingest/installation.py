"""Where the three packages come from. Others use the names `ingest` and `algorithms`, and on PyPI
`lpma` is another project: a distribution may have put its files there, or a folder may come first
on the path.

Importing this module refuses an `lpma` that is not ours, with which nothing here would work, not
even `lpma doctor`; `problems` is what that command reports of the rest.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

NAMES = ("lpma", "algorithms", "ingest")
OURS = Path(__file__).resolve().parent.parent
COMMAND = "ingest.cli:main"  # marks our distribution, even under our former name, `lpma`


def imported_from(name: str) -> Path | None:
    """The folder that holds the package a plain `import` would find."""
    spec = find_spec(name)
    return None if spec is None or not spec.origin else Path(spec.origin).resolve().parent.parent


def _elsewhere(name: str) -> str | None:
    there = imported_from(name)
    if there == OURS:
        return None
    return (
        f"`import {name}` finds the one in {there}, not that of lpma-graph in {OURS}: take that "
        "folder off the path, or uninstall what put it there and install lpma-graph again"
    )


def problems() -> list[str]:
    """What breaks these packages, or may, and what to do about it."""
    found = [problem for name in NAMES if (problem := _elsewhere(name)) is not None]
    here = Path.cwd()
    for name in NAMES:
        for path in (here / name / "__init__.py", here / f"{name}.py"):
            if here.resolve() != OURS and path.is_file():
                found.append(f"{path} hides this {name} from programs in its folder: rename it")
    for stranger, names in sorted(_strangers().items()):
        touched = f", with files in {' and '.join(sorted(names))}" if names else ""
        found.append(
            f"the distribution {stranger} is another project's{touched}: pip uninstall {stranger}, "
            "then install lpma-graph again, in an environment of its own"
        )
    return found


def _strangers() -> dict[str, set[str]]:
    """Distributions of others that have files in our packages, by name; `lpma` in any case."""
    from importlib.metadata import packages_distributions

    owners = packages_distributions()
    found: dict[str, set[str]] = {} if _commands("lpma") is None else {"lpma": set()}
    for name in NAMES:
        for owner in owners.get(name, ()):
            found.setdefault(owner, set()).add(name)
    return {
        owner: names for owner, names in found.items() if COMMAND not in (_commands(owner) or ())
    }


def _commands(name: str) -> list[str] | None:
    """What the commands of an installed distribution call; None if none has the name."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return [point.value for point in distribution(name).entry_points]
    except PackageNotFoundError:
        return None


if (_problem := _elsewhere("lpma")) is not None:
    raise ImportError(_problem, name="lpma")
