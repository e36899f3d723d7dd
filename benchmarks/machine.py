"""What a run was measured on: the code, the machine, the packages."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import device

ROOT = Path(__file__).parents[1]
SOURCES = ("lpma", "algorithms", "ingest")
_ENDINGS = (".py", ".cu", ".cuh")
_PACKAGES = (
    "numpy", "numba", "cupy-cuda12x", "cupy-cuda13x", "scipy", "networkit", "python-graphblas",
    "igraph", "kafka-python",
)  # fmt: skip


def describe() -> dict[str, Any]:
    """All that a reader needs to compare a figure with another run's."""
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "code": code(ROOT),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "device": None if device.why_none() else device.describe(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def name(described: dict[str, Any]) -> tuple[str, str]:
    """(for a file, for a reader) of a machine: its device, or its processor and cores."""
    title = f"{described['processor']}, {described['cores']} cores"
    if described["device"]:
        title = described["device"]["name"]
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(.*?\)", "", title).lower()).strip("-"), title


def keep_to_two_cores() -> None:
    """Let this process use two cores only, where a system can do that. To be called before anything
    is imported that starts threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


def code(root: Path) -> dict[str, Any]:
    """The commit of a checkout and whether it was changed since, both None if there is no checkout;
    and a digest of the sources, which tells two trees apart anywhere."""
    commit = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain")
    return {
        "commit": commit,
        "dirty": None if changed is None else bool(changed),
        "digest": _digest(root),
    }


def _git(root: Path, *arguments: str) -> str | None:
    if not (root / ".git").exists():  # not a checkout that happens to lie above
        return None
    try:
        found = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _ENDINGS:
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
