"""The jars of Apache Kafka, fetched from Maven Central into a cache outside the tree.

They lie in $XDG_CACHE_HOME/lpma/kafka-VERSION-DIGEST (~/.cache without it), the digest that of
pom.xml, complete or not at all: Maven writes into a temporary directory beside it, which is
renamed. Needs `java` (17 or newer) and `mvn`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
FETCH_TIMEOUT_S = 600


class Unavailable(Exception):
    """There is no broker to be had here; the message says how to get one."""


def version() -> str:
    match = re.search(r"<kafka\.version>(.+?)</kafka\.version>", POM.read_text())
    assert match is not None, f"{POM}: names no kafka.version"
    return match[1]


def directory() -> Path:
    """Where the jars are, or would be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()[:8]  # of which jars there are to be
    return cache / "lpma" / f"kafka-{version()}-{digest}"


_failed: Unavailable | None = None


def fetch() -> Path:
    """Fetch the jars where they are not there yet. Raises Unavailable; a process tries once, as a
    network that is not there may take minutes to say so."""
    global _failed
    if directory().is_dir():
        return directory()
    if _failed is None:
        try:
            return _fetch(directory())
        except Unavailable as error:
            _failed = error
    raise _failed


def _fetch(final: Path) -> Path:
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed: Kafka's jars cannot be fetched or run")
    print(f"fetching Apache Kafka {version()} for the tests", flush=True)
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=".tmp-kafka-") as temporary:
        jars = Path(temporary) / "jars"
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(POM)]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        command += [f"-DoutputDirectory={jars}"]
        try:
            subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S
            )
            jars.rename(final)
        except subprocess.CalledProcessError as error:
            lines = (error.stdout + error.stderr).strip().splitlines()
            raise Unavailable(f"mvn failed: {lines[0] if lines else error}") from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"mvn took longer than {FETCH_TIMEOUT_S} s") from error
        except OSError as error:
            if not final.is_dir():  # another run may have been first
                raise Unavailable(f"{final}: {error}") from error
    return final
