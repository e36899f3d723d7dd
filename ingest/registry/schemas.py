"""The schemas of a stream's records: asked of the registry once, and kept with its checkpoints.

Idea: a replay must come to the same batches, with the registry away, and although it may know more
than it did the first time. So what it answered is kept on disk, synced before any record is read by
it, and an answer counts by the stamp under which records were buffered:

    directory/schemas/7.from-0.json              schema 7, for records stamped 0 or later
    directory/schemas/9.none-until-1700000030000.json
                                                 there is no schema 9, for records stamped before
    directory/schemas/others.none-until-1700000000000.json
                                                 nor any that is not among these, likewise

That the registry has no such schema holds for `ASK_AGAIN_MS`: one that has been registered since
counts for the records that come then, and not for those before, which are dead letters already.

A topic of garbage has as many ids as records. So at most MOST_UNKNOWN are remembered one by one.
When there is one more, those that hold no longer become one verdict about all schemas that are not
known; and if all still hold, which is a flood, all of them do, so that no other schema is asked for
until then: MOST_UNKNOWN requests in ASK_AGAIN_MS, at most.

The stamps stand in the name and the answer in the file, with a checksum: of a damaged file the name
is left, so the schema is asked for again, and counts from the same record on.

A registry that is away is asked again at growing intervals, on a thread of its own, while the
pipeline goes on answering queries; see `Trouble` in sources/kafka/outage.py, whose manner is the
same. Ids of schemas never change their meaning: Requires a registry that keeps to that.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from lpma.file.atomic import atomic_write, make_directory

from ..errors import AwayError, CheckpointError, RecordError, SourceError
from ..events import log_event
from ..sources.kafka import clock
from ..sources.kafka.outage import Outage, Trouble
from .client import Schema, SchemaRegistry, UnknownSchema

DIRECTORY = "schemas"  # in that of the checkpoints
ASK_AGAIN_MS = 30_000  # for a schema that was not there
MOST_UNKNOWN = 100  # schemas that were not there, each of which is remembered
SERVICE = "the schema registry"  # as messages of an outage call it
_OTHERS = "others"
_NAME = re.compile(rf"(\d{{1,10}}|{_OTHERS})\.(from|none-until)-(\d{{1,19}})\.json")
_NOT_ASKED = f"not asked for, since the registry had none of {MOST_UNKNOWN} schemas just before"


class Schemas:
    """What is known of the schemas of one stream. registry: None: only what is kept already.
    directory: of the checkpoints; None: nothing is kept. writes: False: nothing is written there.

    One thread at a time; `trouble` may be called from any."""

    def __init__(
        self, registry: SchemaRegistry | None, directory: Path | None, *, writes: bool = True
    ) -> None:
        self._registry = registry
        self._path = None if directory is None else directory / DIRECTORY
        self._writes = writes
        self._known: dict[int, tuple[int, Schema]] = {}  # and the stamp from which it counts
        self._none: dict[int, tuple[int, str]] = {}  # until which stamp there is none; and why
        self._others = -1  # until which stamp there is none that is not known
        self._damaged: dict[int, int] = {}  # schemas to be asked for again: from which stamp
        self._fetch: _Fetch | None = None
        self._trouble = None if registry is None else Trouble(Outage(registry.url, service=SERVICE))
        self._load()

    def of(self, id: int, stamp: int) -> Schema:
        """The schema of records with this id and stamp. Raises RecordError if there is none.
        REQUIRES: this is known, as after `ready`."""
        start, schema = self._known.get(id, (None, None))
        if schema is not None and start is not None and stamp >= start:
            return schema
        is_other = id not in self._none and stamp < self._others
        default = _NOT_ASKED if is_other else "it was not in the registry"
        why = self._none.get(id, (0, default))[1]
        raise RecordError(f"schema {id}: {why}", "unserved")

    def knows(self, id: int, stamp: int) -> bool:
        """Whether it is known if records with this id and stamp have a schema."""
        if id in self._known or stamp < self._none.get(id, (-1, ""))[0]:
            return True
        return stamp < self._others and id not in self._damaged

    def ready(self, ids: Iterable[int], stamp: int, wait_s: float) -> bool:
        """Whether all of these are known, which is waited for no longer than so many seconds.
        Raises SourceError if the registry refuses, AwayError if it is away for too long,
        CheckpointError if what it answers cannot be kept."""
        deadline = time.monotonic() + wait_s
        for id in ids:
            while not self.knows(id, stamp):
                if not self._asked(id, stamp, max(0.0, deadline - time.monotonic())):
                    return False
        return True

    def wait(self, ids: Iterable[int], stamp: int) -> None:
        """Wait until all of these are known. Raises as `ready`."""
        wanted = list(ids)
        while not self.ready(wanted, stamp, 1.0):
            pass

    def trouble(self) -> str | None:
        """What the registry does not answer with; None if nothing is waited for. May be called from
        any thread."""
        said = None if self._trouble is None else self._trouble.said()
        return said and f"schemas are {said}"

    # Asking ----------------------------------------------------------------------------------

    def _asked(self, id: int, stamp: int, wait_s: float) -> bool:
        """Whether the registry has answered about this id, or about another one meanwhile."""
        registry, trouble = self._registry, self._trouble
        if registry is None or trouble is None:
            raise SourceError(
                f"schema {id} is not among those that are kept with the checkpoints: give "
                "schema_registry, or --schema-registry URL"
            )
        if self._fetch is None:
            trouble.rest(clock.now() + wait_s)
            if trouble.rests:
                return False
            self._fetch = _Fetch(registry, id)
        self._fetch.join(wait_s)
        if self._fetch.is_alive():
            return False
        fetch, self._fetch = self._fetch, None
        if isinstance(fetch.error, AwayError):
            lasted = trouble.fails(str(fetch.error), registry.patience)
            if lasted is not None:
                raise AwayError(
                    f"no schema {fetch.id} for {lasted:.0f} s: {SERVICE}: {fetch.error}. Nothing "
                    "is lost: start the same again when it answers"
                )
            return True  # the next one rests first
        if fetch.error is not None and not isinstance(fetch.error, UnknownSchema):
            raise fetch.error
        trouble.answered()
        trouble.ends()
        trouble.outage.end()
        self._learn(fetch, stamp)
        return True

    def _learn(self, fetch: _Fetch, stamp: int) -> None:
        """Note an answer, and keep it."""
        id, schema = fetch.id, fetch.schema
        if schema is None:
            until = stamp + ASK_AGAIN_MS
            self._keep(f"{id}.none-until-{until}.json", str(fetch.error))
            self._none[id] = until, str(fetch.error)
            if len(self._none) > MOST_UNKNOWN:
                self._gather(stamp)
            return
        # Where it was missing once, records before this one are dead letters already.
        was_missing = id in self._none or self._others >= 0
        start = self._damaged.pop(id, stamp if was_missing else 0)
        self._keep(f"{id}.from-{start}.json", schema)
        self._known[id] = start, schema

    def _gather(self, stamp: int) -> None:
        """Make one verdict of those about schemas that were not there."""
        ended = {id: until for id, (until, _) in self._none.items() if until <= stamp}
        gathered = ended or {id: until for id, (until, _) in self._none.items()}
        others = max(self._others, *gathered.values())
        self._keep(f"{_OTHERS}.none-until-{others}.json", _NOT_ASKED)
        self._others = others
        for id, until in gathered.items():
            del self._none[id]
            self._remove(f"{id}.none-until-{until}.json")
        if not ended:
            advice = (
                f"the registry has none of {len(gathered):,} schemas asked for within "
                f"{ASK_AGAIN_MS // 1000} s: for as long, records of any other that is new become "
                "dead letters, too: are all producers of this topic known?"
            )
            log_event("schemas unknown", logging.WARNING, schemas=len(gathered), advice=advice)

    # On disk ---------------------------------------------------------------------------------

    def _keep(self, name: str, content: Any) -> None:
        """Write a file that lasts through a power cut, and remove what it replaces."""
        path = self._path
        if path is None or not self._writes:
            return
        body = msgspec.json.encode(content)
        try:
            make_directory(path)
            with atomic_write(path / name) as file:
                file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            kind = name.rpartition("-")[0]
            for old in path.glob(f"{kind}-*.json"):
                if old.name != name:
                    old.unlink()
        except OSError as error:
            raise CheckpointError(f"{path / name}: cannot be written: {error}") from error

    def _remove(self, name: str) -> None:
        """Remove a file, which another tells by now."""
        if self._path is not None and self._writes:
            with suppress(OSError):  # it is read again, and says nothing else
                (self._path / name).unlink(missing_ok=True)

    def _load(self) -> None:
        """What is kept there."""
        if self._path is None or not self._path.is_dir():
            return
        try:
            paths = sorted(self._path.iterdir())
            found = [(path, match) for path in paths if (match := _NAME.fullmatch(path.name))]
            for path, match in found:
                kind, stamp = match[2], int(match[3])
                if match[1] == _OTHERS:
                    self._others = max(stamp, self._others)
                    continue
                id = int(match[1])
                if kind == "none-until":
                    until = max(stamp, self._none.get(id, (0, ""))[0])
                    self._none[id] = until, _read(path, str) or "it was not in the registry"
                elif (schema := _read(path, Schema)) is not None and schema.id == id:
                    self._known[id] = stamp, schema
                else:
                    self._damaged[id] = stamp
        except OSError as error:
            raise CheckpointError(f"{self._path}: cannot be read: {error}") from error


def _read(path: Path, kind: Any) -> Any:
    """What a file holds; None if it is damaged."""
    checksum, _, body = path.read_bytes().partition(b"\n")
    if checksum != hashlib.sha256(body).hexdigest().encode():
        return None
    with suppress(msgspec.DecodeError, msgspec.ValidationError):
        return msgspec.json.decode(body, type=kind)
    return None


def remove_schemas(directory: str | os.PathLike[str]) -> None:
    """Remove what a stream that has begun there kept. Raises OSError."""
    path = Path(directory) / DIRECTORY
    if path.is_dir():
        for each in path.iterdir():
            each.unlink()
        path.rmdir()


class _Fetch(threading.Thread):
    """One request, begun at once. schema, error: the answer, one of them."""

    def __init__(self, registry: SchemaRegistry, id: int) -> None:
        super().__init__(name="lpma-schema", daemon=True)
        self.id = id
        self.schema: Schema | None = None
        self.error: BaseException | None = None
        self._asked = registry
        self.start()

    def run(self) -> None:
        try:
            self.schema = self._asked.schema(self.id)
        except BaseException as error:  # noqa: BLE001 - told by whoever waits for the answer
            self.error = error
