"""A pipeline's settings, and the figures it reports."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Self, TypeAlias, TypedDict, get_args, get_type_hints

from msgspec import Meta

from lpma.backend import check_device
from lpma.pma.counters import Unchanged

from .arguments import by_name
from .errors import PipelineError, UnknownSetting
from .fields import (
    Debezium,
    Fields,
    Records,
    checked_records,
    differences,
    fields_of,
    records_from_json,
    records_to_json,
)
from .formats.changes import ChangesFormat, EdgeChanges
from .formats.replies import DeadLetter
from .pipeline.windows import Width, WindowTime, span_text, width_of
from .registry.client import SchemaRegistry, checked_registry
from .results.figures import ResultSink, check_figures, check_place, checked_alerts
from .state.retention import RetentionPolicy
from .timers import now_ms
from .types import REPLIES, Ids, Late, Reply, Sink

DeadLetterSink = Sink | tuple[Sink, str] | Callable[[DeadLetter], object] | None
ReplySink = Sink | Callable[[Reply], object] | None
ChangesSink = (
    Sink | tuple[Sink, str] | str | os.PathLike[str] | Callable[[EdgeChanges], object] | None
)


def _said(key: str, description: str, **limits: Any) -> Meta:
    """What is said of a setting where it is declared: its place in files of settings, what it
    means there, and its limits."""
    return Meta(description=description, extra={"key": key}, **limits)


LatePolicy: TypeAlias = Annotated[Late, _said("records.late", "What to do with late operations.")]
MaxLateness: TypeAlias = Annotated[
    int, _said("records.max_lateness",
               "How far behind the newest event time is not yet late, in its unit.", ge=0),
]  # fmt: skip
MovedBy: TypeAlias = Annotated[
    WindowTime,
    _said("records.window_time", "What moves the window: the newest event time, or arrival, which "
          "is then the time of every edge."),
]  # fmt: skip
KeepCheckpoints: TypeAlias = Annotated[
    str,
    _said("checkpoints.keep", "Old checkpoints to keep for past views, as '1h=24,1d=7': one an "
          "hour for 24 hours, one a day for 7 days. '' keeps none; by default as the stream did "
          "so far."),
]  # fmt: skip
BatchSize: TypeAlias = Annotated[int, _said("batches.size", "Operations per batch.", ge=1)]
BatchInterval: TypeAlias = Annotated[
    float, _said("batches.interval", "Close a batch after this many seconds.", ge=0.0)
]
QueryInterval: TypeAlias = Annotated[
    float, _said("batches.query_interval", "Close one so many seconds after a query.", ge=0.0)
]
MaxQueries: TypeAlias = Annotated[int, _said("batches.max_queries", "Queries in one batch.", ge=1)]
MaxWaiting: TypeAlias = Annotated[
    int, _said("batches.max_waiting_queries",
               "Queries that wait in a log; those beyond are put off.", ge=1),
]  # fmt: skip
PollRecords: TypeAlias = Annotated[
    int, _said("batches.poll_records", "Records requested from the source at once.", ge=1)
]
CheckpointOperations: TypeAlias = Annotated[
    int, _said("checkpoints.operations", "Take one after this many operations.", ge=1)
]
CheckpointInterval: TypeAlias = Annotated[
    float, _said("checkpoints.interval",
                 "Take one this many seconds after the last, if anything came since.", ge=0.0),
]  # fmt: skip
MaxHops: TypeAlias = Annotated[int, _said("batches.max_hops", "Steps of one query for hops.", ge=0)]
MaxReplyRows: TypeAlias = Annotated[
    int, _said("batches.max_reply_rows", "Rows of one reply; other queries ask for more.", ge=1)
]
History: TypeAlias = Annotated[
    int, _said("batches.history", "Batches whose figures are kept.", ge=0)
]
StopIfFirstBad: TypeAlias = Annotated[int, Meta(ge=0)]

_NAMED = {"dense": False, "mapped": True}  # by what a checkpoint keeps


@dataclass(frozen=True)
class RecordSettings:
    """How a stream's records become operations: what a replay must know to do the same again. A
    checkpoint keeps it, and a pipeline that resumes reads on as the checkpoint says. So these
    settings are chosen once, when the pipeline is made.

    Raises PipelineError if it makes no sense."""

    records: Records = "msgpack"  # updates; queries are msgpack always
    names: bool = False  # True: vertices go by any integer of 64 bits, or by text
    late: LatePolicy = "apply"  # what becomes of late operations: see `pipeline/windows.py`
    max_lateness: MaxLateness = 0
    window: Width = None  # edges are kept so long; None: for ever
    window_time: MovedBy = "event"
    max_ahead: Width = "24h"  # how far past the clock an event time may lie; None: anywhere
    enveloped: bool = False  # whether records in Confluent's envelope are read; so with a registry
    ids: InitVar[Ids | None] = None  # until the next release: "mapped" is names=True

    def __post_init__(self, ids: Ids | None) -> None:
        object.__setattr__(self, "names", by_name(self.names, ids, PipelineError))
        object.__setattr__(self, "records", checked_records(self.records))
        if self.late not in get_args(Late):
            known = ", ".join(get_args(Late))
            raise PipelineError(f"late is {self.late!r}: expected one of {known}")
        if type(self.max_lateness) is not int or not 0 <= self.max_lateness < 2**63:
            raise PipelineError(f"max_lateness is {self.max_lateness!r}: expected 0 … 2^63 − 1")
        object.__setattr__(self, "window", width_of(self.window))
        if self.window_time not in get_args(WindowTime):
            found = f"window_time is {self.window_time!r}"
            raise PipelineError(f"{found}: expected one of {', '.join(get_args(WindowTime))}")
        ahead = width_of(self.max_ahead, "max_ahead")
        object.__setattr__(self, "max_ahead", ahead if self.measures_times else None)

    @property
    def measures_times(self) -> bool:
        """Whether event times decide anything: what a window keeps, or what is late."""
        by_event = self.window is not None and self.window_time == "event"
        return by_event or self.late != "apply"

    def fields_of(self, topic: str) -> Fields | None:
        """The mapping of that topic's records; None if all are in our own forms."""
        return fields_of(self.records, topic)

    def kept(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """These settings by name. Raises PipelineError if one of those `given` differs."""
        own = {field.name: getattr(self, field.name) for field in fields(RecordSettings)}
        given = dict(given)
        if given.get("schema_registry") is not None and not self.enveloped:
            raise PipelineError(
                "schema_registry: the checkpoint was taken without one, so records in Confluent's "
                "envelope became dead letters, which a resume cannot change: leave it out, or "
                "start a new checkpoint"
            )
        for name, check in (("window", width_of), ("records", checked_records)):
            if name in given:
                given[name] = check(given[name])
        if "max_ahead" in given:
            ahead = width_of(given["max_ahead"], "max_ahead")
            given["max_ahead"] = ahead if self.measures_times else None
        for name, value in own.items():
            if name in given and given[name] != value:
                has, now = _told(name, value), _told(name, given[name])
                found = "; ".join(differences(value, given[name]))
                found = found or f"is {now}, but the checkpoint was taken with {has}"
                advice = "leave it out, or start a new checkpoint"
                if name == "records" and _reads_tables(value):
                    advice += (
                        " from a new snapshot of the table; where a column was renamed, Kafka "
                        "Connect's transform ReplaceField can keep the old name"
                    )
                raise PipelineError(f"{name} {found}, which a resume cannot change: {advice}")
        return own

    def to_json(self) -> dict[str, Any]:
        """As a checkpoint keeps them, which says `ids` for what `names` is here, and nothing of a
        window or a bound where there is none."""
        content = self.kept({})
        if self.window is None:
            del content["window"], content["window_time"]
        if self.max_ahead is None:
            del content["max_ahead"]
        if not self.enveloped:
            del content["enveloped"]
        content["ids"] = "mapped" if content.pop("names") else "dense"
        content["records"] = records_to_json(self.records)
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        records: Records = records_from_json(content["records"])
        own = {"max_ahead": None, **content}  # an older release had no bound
        own |= {"records": records, "names": _NAMED[content["ids"]]}
        del own["ids"]
        return cls(**own)


@dataclass(frozen=True)
class Settings(RecordSettings):
    """A pipeline's settings, first of all how to read records: see `RecordSettings`. Raises
    PipelineError if it makes no sense, and `lpma.DeviceError` for a device that is not here.

    dead_letters: where bad records go: a log (topic "dead-letters"), a (log, topic) pair, or a
    function of a DeadLetter. None: the source, if it is a log; otherwise they go nowhere. The
    last 1000 are kept in `pipeline.outputs.kept` in any case.
    replies: where the answers to queries go: a log, or a function of a Reply. None: the
    source, if it is a log; otherwise queries are bad records.
    window: how long edges are kept: "24h" (ms, s, m, h, d, w), a timedelta, or a number in the unit
    of the times; None: for ever.
    window_time: what moves it, "event" time or "arrival".
    max_ahead: where event times move a window, or say what is late, a row whose time lies further
    past the clock is a dead letter; as `window`. None: none is.
    stop_if_first_bad: a new stream whose first so many records are all bad, or all that it has
    if it ends before, raises AllRecordsBad, and leaves no checkpoint and no dead letter; until a
    good one comes, dead letters and checkpoints wait. It stops, too, if none of them has a field
    that the mapping names. 0: it goes on. `lpma ingest` says 1000.
    results: where changes of the figures in `track` go, and alerts: a log (topic "results"), a
    (log, topic) pair, a path of a file (JSON lines), or a function of a Result. None: nowhere.
    changes: where the edge feed goes, what each version of the graph changed: a log (topic
    "changes"), a (log, topic) pair, a path of a file (JSON lines), or a function of EdgeChanges.
    changes_format: "columns", or "json": an object of JSON for each edge that changed.
    schema_registry: where the schemas of records in Confluent's envelope are: a URL, or an
    `ingest.SchemaRegistry`. A stream that began with one may be resumed without: then it knows the
    schemas that are kept with its checkpoints.

    >>> ingest.Settings(batch_size=1000, late="reject", max_lateness=60_000).batch_interval
    0.1
    >>> ingest.Settings(batch_size=0)
    Traceback (most recent call last):
    ingest.errors.PipelineError: batch_size is 0: it must be at least 1, whole
    """

    dead_letters: DeadLetterSink = None
    replies: ReplySink = None
    batch_size: BatchSize = 100_000
    batch_interval: BatchInterval = 0.1
    query_interval: QueryInterval = 0.0
    max_queries: MaxQueries = 10_000
    max_waiting_queries: MaxWaiting = 10_000
    poll_records: PollRecords = 500
    checkpoint_operations: CheckpointOperations = 5_000_000
    checkpoint_interval: CheckpointInterval = 60.0
    reply_topics: tuple[str, ...] = (REPLIES,)  # those that a query may name
    max_hops: MaxHops = 2
    device: str = "auto"  # on which `resume` loads the graph; a graph that is given must be on it
    max_reply_rows: MaxReplyRows = 1_000_000
    history: History = 100_000
    clock: Callable[[], int] = now_ms  # ms since 1970: the stamps
    keep_checkpoints: KeepCheckpoints | None = None
    track: Sequence[str] = ()  # figures kept after every batch: see `results/figures.py`
    results: ResultSink = None
    alerts: Sequence[str] = ()  # rules, as "core >= 20"
    changes: ChangesSink = None
    changes_format: ChangesFormat = "columns"
    stop_if_first_bad: StopIfFirstBad = 0  # of a new stream: see `pipeline/outputs.py`
    schema_registry: SchemaRegistry | str | None = None

    def __post_init__(self, ids: Ids | None) -> None:
        super().__post_init__(ids)
        registry = checked_registry(self.schema_registry)
        object.__setattr__(self, "schema_registry", registry)
        object.__setattr__(self, "enveloped", self.enveloped or registry is not None)
        for name, limits in numbers().items():
            value = getattr(self, name)
            if isinstance(limits.ge, float):
                if not (_is(Real, value) and value >= 0):
                    raise PipelineError(f"{name} is {value!r}: expected seconds, not negative")
            elif not (_is(Integral, value) and value >= limits.ge):
                raise PipelineError(f"{name} is {value!r}: it must be at least {limits.ge}, whole")
        topics: Any = self.reply_topics
        are_names = isinstance(topics, Collection) and all(isinstance(t, str) for t in topics)
        if isinstance(topics, str) or not are_names:
            raise PipelineError(f"reply_topics is {topics!r}: expected a tuple of names")
        object.__setattr__(self, "track", check_figures(self.track))
        alerts = checked_alerts(self.results, self.alerts, self.track)
        object.__setattr__(self, "alerts", alerts)
        if self.changes is not None:
            check_place("changes", self.changes)
        if self.changes_format not in get_args(ChangesFormat):
            known = " or ".join(map(repr, get_args(ChangesFormat)))
            raise PipelineError(f"changes_format is {self.changes_format!r}: expected {known}")
        RetentionPolicy.of("" if self.keep_checkpoints is None else self.keep_checkpoints)
        if not callable(self.clock):
            raise PipelineError(f"clock is {self.clock!r}: expected a function, of ms since 1970")
        check_device(self.device)

    def record_settings(self) -> RecordSettings:
        """The part that a checkpoint keeps."""
        return RecordSettings(**self.kept({}))

    @classmethod
    def given_to(
        cls, call: Callable[..., Any], given: SettingsDict, refused: Sequence[str] = ()
    ) -> Settings:
        """The settings that `call`, which takes them by keyword, was given. refused: those that it
        does not take. Raises UnknownSetting, which names the call and what may have been meant."""
        every = [each.name for each in fields(cls)]
        known = [name for name in every if name not in refused]
        for name in given:
            if name not in (*every, "ids"):
                own = [p.name for p in inspect.signature(call).parameters.values()
                       if p.kind is not p.VAR_KEYWORD]  # fmt: skip
                near = get_close_matches(name, [*known, *own], 1)
                hint = f"did you mean {near[0]}?" if near else f"it knows {', '.join(known)}"
                raise UnknownSetting(f"{call.__qualname__} has no setting {name!r}: {hint}")
        return cls(**given)


@cache
def declared() -> dict[str, tuple[Any, Meta]]:
    """The settings of which something is said where they are declared, with their types."""
    found = {}
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        for part in (hint, *get_args(hint)):
            if isinstance(meta := getattr(part, "__metadata__", (None,))[0], Meta):
                found[name] = part, meta
    return found


def numbers() -> dict[str, Meta]:
    """The settings that are numbers, and their limits."""
    return {name: meta for name, (_, meta) in declared().items() if meta.ge is not None}


def _reads_tables(records: Records) -> bool:
    """Whether some topic holds changes of a table."""
    each = records.values() if isinstance(records, Mapping) else (records,)
    return any(isinstance(one, Debezium) for one in each)


def _told(name: str, value: Any) -> str:
    """A setting's value; of a width, which is in the unit of the times, what that is if they are
    milliseconds."""
    if name in ("window", "max_ahead") and isinstance(value, int) and value >= 1000:
        return f"{value} ({span_text(value)} if times are in milliseconds)"
    return repr(value)


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


class SettingsDict(TypedDict, total=False):
    """The fields of `Settings` for functions that take them by keyword, so that type checkers and
    editors know them: `**settings: Unpack[SettingsDict]`. A test keeps the two in step.

    >>> settings: ingest.SettingsDict = {"batch_size": 1000}
    >>> ingest.Settings(**settings).batch_size
    1000
    """

    records: Records
    names: bool
    late: Late
    max_lateness: int
    window: Width
    window_time: WindowTime
    max_ahead: Width
    dead_letters: DeadLetterSink
    replies: ReplySink
    batch_size: int
    batch_interval: float
    query_interval: float
    max_queries: int
    max_waiting_queries: int
    poll_records: int
    checkpoint_operations: int
    checkpoint_interval: float
    reply_topics: tuple[str, ...]
    max_hops: int
    device: str
    max_reply_rows: int
    history: int
    clock: Callable[[], int]
    keep_checkpoints: str | None
    track: Sequence[str]
    results: ResultSink
    alerts: Sequence[str]
    changes: ChangesSink
    changes_format: ChangesFormat
    stop_if_first_bad: int
    enveloped: bool
    schema_registry: SchemaRegistry | str | None
    ids: Ids | None  # until the next release: see RecordSettings


@dataclass(frozen=True)
class BatchStats:
    """One batch, for progress bars and plots.

    >>> with ingest.SqliteLog("log") as log:
    ...     _ = log.produce("updates", ingest.encode_updates([1, 2], [2, 3]))
    ...     with ingest.Pipeline(log, lpma.Graph(device="cpu")) as pipeline:
    ...         _ = pipeline.run("end")
    >>> pipeline.stats.history[-1].num_edges
    2
    """

    operations: int
    queries: int  # among the operations
    seconds: float  # that graph.apply took
    since_start: float  # seconds since the pipeline was made or resumed
    total_operations: int  # since the stream began
    version: int  # of the graph after it
    num_edges: int
    density: float  # filled slots / slots
    time: int  # stamp of its last operation, ms since 1970
    unchanged: Unchanged = field(default_factory=Unchanged)  # operations that changed nothing
    expired: int = 0  # edges that were older than a window's bound, or an expiry's


@dataclass(frozen=True)
class CheckpointFigures:
    """One checkpoint that was committed.

    >>> log = ingest.SqliteLog("kept.log")
    >>> _ = log.produce("updates", ingest.encode_updates([1, 2], [2, 3]))
    >>> with ingest.Pipeline(log, lpma.Graph(device="cpu"), "state") as pipeline:
    ...     _ = pipeline.run("end")
    ...     pipeline.checkpoint_now()
    ...     pipeline.stats.checkpoint_figures.operations
    2
    """

    number: int
    time: int  # when it was taken, ms since 1970
    operations: int  # applied by then, since the stream began
    version: int  # of the graph then
    bytes: int
    stopped: float  # seconds that the stream waited for it
    seconds: float  # from its beginning to its commit
