"""`--config` and `--write-config`: a command's options in a file."""

from __future__ import annotations

import inspect
import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest.cli import _config, _ingest_options, _options, _serve_options
from ingest.cli.cluster import _options as cluster_options
from ingest.errors import SourceError
from ingest.sources.kafka.config import settings_of
from tests.support.command_line import document, run

FOR_THE_COMMAND_LINE_ALONE = {"dry_run", "as_json", "ids"}


def written(folder: Path, text: str, name: str = "stream.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_says_what_a_command_line_says(edge_file: Path, tmp_path: Path) -> None:
    config = written(tmp_path, f"""\
[source]
path = "{edge_file.name}"
[checkpoints]
directory = "state"
[graph]
segment_size = 4
device = "cpu"
[batches]
size = 2
history = 1
[outputs]
statistics = "run.jsonl"
[run]
limit = 4
""")  # fmt: skip
    first = document("ingest", "--config", config)
    assert (first["operations"], first["edges"]) == (4, 4)
    assert document("info", tmp_path / "state")["segment_size"] == 4
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 2
    rest = document("ingest", "--config", config, "--limit", 1)  # what is given here wins
    assert (rest["operations"], rest["resumed"]) == (1, True)


def test_a_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    config = tmp_path / "stream.toml"
    config.write_bytes(b"\xef\xbb\xbf[batches]\r\nsize = 7\r\n")
    told = run("ingest", "s.log", "--config", config, "--write-config").stdout
    assert tomllib.loads(told)["batches"] == {"size": 7}


def test_lists_and_numbers(tmp_path: Path) -> None:
    config = written(tmp_path, """\
kafka = {servers = ["a:1", "b:2"], topics = ["updates"]}
batches.interval = 2
results = {track = ["core", "triangles"], alerts = ["core >= 3"]}
""")  # fmt: skip
    found = tomllib.loads(run("ingest", "--config", config, "--write-config").stdout)
    assert found["kafka"] == {"servers": "a:1,b:2", "topics": ["updates"]}
    assert found["results"] == {"track": "core,triangles", "alerts": ["core >= 3"]}
    assert found["batches"] == {"interval": 2.0}


def test_what_is_written_says_the_same_again(tmp_path: Path) -> None:
    given = [
        "ingest", "--kafka", "h:1", "--topic", "a", "--topic", 'b "c"', "-c", tmp_path / "state",
        "--undirected", "--source", "user", "--window", "24h",
        "--names", "--track", "core", "--alert", "core >= 2", "--serve", 8080,
        "--follow", "--from-offsets", "earliest",
    ]  # fmt: skip
    for key in (
        "graph.weight_dtype=float64", "checkpoints.accept_gap=true", "graph.times=false",
        "graph.segment_size=8", "graph.strategy=bottom-up",
        "fields.default_weight=2.5", "records.late=dead-letter", "records.max_lateness=7",
        "checkpoints.interval=0.5", "checkpoints.keep=1h=24", "serve.allow_hosts=x",
        "batches.interval=0.25", "outputs.reply_topics=r",
    ):  # fmt: skip
        given += ["--set", key]
    once = run(*given, "--write-config").stdout
    config = written(tmp_path, once)
    assert run("ingest", "--config", config, "--write-config").stdout == once
    said = tomllib.loads(once)
    assert said["graph"] == {
        "directed": False, "weight_dtype": "float64", "times": False, "segment_size": 8,
        "strategy": "bottom-up",
    }  # fmt: skip
    assert said["checkpoints"]["accept_gap"] is True
    assert "# Slots per segment" in once
    assert "# max_hops = 2" in once


PAGE = Path(__file__).parents[3] / "docs" / "howto" / "settings.md"
DAY_S = 86_400


def test_a_file_by_hand_as_its_page_has_it(tmp_path: Path) -> None:
    """The page's examples, on an embedded log in place of Kafka."""
    _, first, more, *_ = PAGE.read_text().split("```toml\n")
    whole = first.partition("```")[0]
    servers = 'servers = "broker-1:9093,broker-2:9093"'
    kafka, rest = whole.split("[records]")
    assert servers in kafka
    assert run("ingest", "--config", written(tmp_path, whole), "--write-config").stdout
    here = f"[source]\npath = '{tmp_path / 'own.log'}'\n[records]{rest}"
    here = here.replace("/var/lib/graph", str(tmp_path / "state")).replace(":8080", ":0")
    here = here.replace("core >= 20", "core >= 2")
    own = written(tmp_path, here + "\n" + more.partition("```")[0])
    with ingest.SqliteLog(tmp_path / "own.log") as log:
        for topic in ("clicks", "follows", "queries", "results"):
            log.create_topic(topic)
        for day, ends in enumerate(["aa", "ba", "bb", "ab"]):
            after = {"user": {"id": ends[0]}, "item": ends[1]}
            record = {"after": after, "at": 20 * day * DAY_S}
            log.produce("clicks", json.dumps(record).encode())
        log.produce_many("follows", [
            b'{"who": "ann", "whom": "bob", "what": "follow"}',
            b'{"who": "bob", "whom": "ann", "what": "follow"}',
            b'{"who": "ann", "whom": "bob", "what": "unfollow"}',
        ])  # fmt: skip
    found = document("ingest", "--config", own)
    assert (found["operations"], found["rejected"]) == (7, 0)
    assert found["expired"] == 2, "two clicks are older than 30 days"
    assert found["results"]["figures"]
    rest_of_it = document("ingest", "-c", tmp_path / "state", "--set", "serve.address=0")
    assert (rest_of_it["resumed"], rest_of_it["operations"]) == (True, 0)
    once = run("ingest", "--config", own, "--write-config").stdout
    again = written(tmp_path, once, "again.toml")
    assert run("ingest", "--config", again, "--write-config").stdout == once


def joined(text: str) -> str:
    """Without what the frame of a message breaks it into."""
    return "".join(text.replace("│", "").split())


MISTAKES = [
    ("batches.sise = 7", "batches.sise: no such setting: did you mean batches.size?"),
    ("[kafkas]\nservers = 'a:1'", "kafkas: no such setting"),
    ("[outputs]\nserver = 1", "outputs.server: no such setting"),
    ("[run]\ndevice = 'cpu'", "run.device: no such setting: did you mean graph.device?"),
    ("batches = 3", "batches: no such setting: batches has history"),
    ("source = 's.log'", "source: no such setting: source has from_offsets, path"),
    ("batches.size = 0", "batches.size: expected `int` >= 1"),
    ("batches.size = '7'", "batches.size: expected `int`"),
    ("batches.max_hops = -1", "batches.max_hops: expected `int` >= 0"),
    ("batches.query_interval = -0.5", "batches.query_interval: expected `float` >= 0.0"),
    ("kafka.topics = ['a', 3]", "kafka.topics[number 2]: expected `str | object`"),
    (
        "kafka.topics = [{nam = 'a'}]",
        "kafka.topics[number 1].nam: no such setting: did you mean name?",
    ),
    (
        "kafka.topics = ['a', {name = 'b', fields = {sorce = 'u'}}]",
        "kafka.topics[b].fields.sorce: no such setting: did you mean source?",
    ),
    (
        "kafka.topics = [{name = 'b', fields = {source = 1.5}}]",
        "kafka.topics[b].fields.source: expected `int | str`, got `float`",
    ),
    (
        "kafka.topics = [{name = 'b', fields = {time_unit = 'sec'}}]",
        "kafka.topics[b].fields.time_unit: invalid enum value 'sec': expected one of s, ms, us, ns",
    ),
    (
        "kafka.topics = [{name = 'b', fields = {source = 'u', target = 'u'}}]",
        "kafka.topics[b].fields: fields ['u', 'u']: each must have a name of its own",
    ),
    (
        "kafka.topics = ['a', {name = 'b', fields = {weight = ''}}]",
        "kafka.topics[b].fields.weight: weight is '': expected the name of a field",
    ),
    (
        "kafka.topics = ['a', {name = 'b', fields = {source = 1}}]",
        "kafka.topics[b].fields.source: source is 1: columns have numbers in files",
    ),
    (
        "kafka.topics = [{name = 'b', fields = {kinds = {a = 'ins'}}}]",
        "kafka.topics[b].fields.kinds: a: 'ins': expected one of append",
    ),
    (
        "kafka.topics = [{name = 'b', fields = {kinds = 'a'}}]",
        "kafka.topics[b].fields.kinds: 'a': expected WORD=KIND",
    ),
    (
        "kafka.topics = ['a', {name = 'b', format = 'debezium', fields = {kind = 'x'}}]",
        "kafka.topics: b: a change event says its kind itself",
    ),
    ("kafka.topics = ['a', '']", "kafka.topics[number 2]: expected `str` of length >= 1"),
    ("kafka.topics = []", "kafka.topics: names nothing: give one at least, or leave it out"),
    ("outputs.reply_topics = []", "outputs.reply_topics: names nothing"),
    ("fields.kinds = {a = 3}", "fields.kinds[...]: expected `str`, got `int`"),
    ("fields.kinds = 'a'", "fields.kinds: 'a': expected WORD=KIND"),
    ("records.window = '30 days'", "records.window: window is '30 days': expected '24h'"),
    (
        "results.track = ['cores']",
        "track: 'cores' is no figure: did you mean core? expected some of core",
    ),
    ("serve.address = 'x'", "serve.address: 'x': give a port"),
    (
        "graph.strategy = 'sideways'",
        "graph.strategy: invalid enum value 'sideways': expected one of "
        "hybrid, bottom-up, top-down",
    ),
    ("serve.address = 80.5", "serve.address: expected `str`, got `float`"),
    ("graph.device = 'gpu'", "graph.device: use auto, cpu, cuda or cuda:N"),
    ("run.follow = 1", "run.follow: expected `bool`"),
    ("checkpoints.directory = 3", "checkpoints.directory: expected the name of a file"),
    ("results.topic = ''", "results.topic: a name is missing"),
    ("= 3", "not TOML"),
]


@pytest.mark.parametrize("text, message", MISTAKES)
def test_a_mistake_is_told_by_its_key(text: str, message: str, tmp_path: Path) -> None:
    config = written(tmp_path, text)
    told = run("ingest", "x.log", "-c", tmp_path / "state", "--config", config, status=2).stderr
    assert joined(message) in joined(told)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("kinds", ["'+=insert,-=delete'", "{'+' = 'insert', '-' = 'delete'}"])
@pytest.mark.parametrize("place", ["file", "topic", "set"])
def test_kinds_are_a_table_or_text(kinds: str, place: str, tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    with ingest.SqliteLog(log) as opened:
        opened.create_topic("a", 1)
        for kind in "+-":
            opened.produce("a", json.dumps({"u": 1, "v": 2, "op": kind}).encode())
    mapping = "source = 'u', target = 'v', kind = 'op'"
    text, given = f"[fields]\n{mapping.replace(', ', chr(10))}\nkinds = {kinds}", []
    if place == "topic":
        text = f"kafka.topics = [{{name = 'a', fields = {{{mapping}, kinds = {kinds}}}}}]"
    elif place == "set":
        text = text.rpartition("\n")[0]
        given = ["--set", f"fields.kinds={kinds.strip(chr(39))}"]
    topic = [] if place == "topic" else ["--topic", "a"]
    config = written(tmp_path, f"source.path = 'x.log'\n{text}")
    state = tmp_path / "state"
    source = [] if place == "topic" else [log]  # which would leave no room for its topics
    found = document("ingest", *source, *topic, "-c", state, "--config", config, *given)
    assert (found["operations"], found["edges"], found["dead_letters"]) == (2, 0, {})
    assert document("ingest", "-c", state)["resumed"]  # and is remembered


def test_a_topic_has_one_mapping(tmp_path: Path) -> None:
    topics = "['b', {name = 'b', fields = {source = 'u', target = 'i'}}]"
    config = written(tmp_path, f"source.path = 'x.log'\nkafka.topics = {topics}")
    told = run("ingest", "-c", tmp_path / "state", "--config", config, status=2).stderr
    assert joined("kafka.topics: 'b' is there twice: a topic has one mapping") in joined(told)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    told = run("serve", "g", "--config", tmp_path / "none.toml", status=2).stderr
    assert "none.toml:Nosuchfile" in joined(told)


def test_the_command_line_names_another_source(edge_file: Path, tmp_path: Path) -> None:
    config = written(
        tmp_path, "kafka = {servers = 'h:1', topics = ['a']}\ncheckpoints.directory = 's'"
    )
    assert document("ingest", edge_file, "--config", config)["operations"] == 6
    config = written(tmp_path, "source.path = 'a.log'\nresults.topic = 'r'")
    told = run(
        "ingest", "--kafka", "h:1", "--results-file", "r", "--config", config, "--write-config"
    ).stdout
    found = tomllib.loads(told)
    assert (found["source"], found["results"]) == ({}, {"file": "r"})


def test_a_secret_is_only_referred_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSH", "very secret")
    (tmp_path / "key").write_text("also secret\n")
    config = written(tmp_path, """\
[kafka]
servers = "h:1"
[kafka.settings]
sasl_plain_password = "${HUSH}"
ssl_password_file = "key"
request_timeout_ms = 7000
""")  # fmt: skip
    told = run("ingest", "--config", config, "--write-config").stdout
    assert "secret" not in told.partition("[kafka]")[2].partition("settings = ")[2].splitlines()[0]
    table = tomllib.loads(told)["kafka"]["settings"]
    assert table["sasl_plain_password"] == "${HUSH}"
    assert settings_of(table, config, "kafka.settings") == {
        "sasl_plain_password": "very secret", "ssl_password": "also secret",
        "request_timeout_ms": 7000,
    }  # fmt: skip
    for value in ("hush", "x${HUSH}", 7):
        with pytest.raises(SourceError, match=r"kafka\.settings\.sasl_plain_password: a secret"):
            settings_of({"sasl_plain_password": value}, config, "kafka.settings")
    written(tmp_path, "kafka = {servers = 'h:1', settings = {sasl_plain_password = 'hush'}}")
    for more in (), ("--write-config",):
        told = run("ingest", "--config", config, "-c", tmp_path / "s", *more, status=2)
        assert "sasl_plain_password_file" in joined(told.stderr)
        assert "hush" not in told.stdout + told.stderr


def test_a_cluster_takes_kafkas_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSH", "very secret")
    config = written(tmp_path, """\
source.path = "kafka://h:1"
cluster.shards = 2
checkpoints.directory = "state"
[kafka.settings]
security_protocol = "SASL_SSL"
sasl_plain_password = "${HUSH}"
""")  # fmt: skip
    told = run("cluster", "run", "--config", config, "--write-config").stdout
    table = tomllib.loads(told)["kafka"]["settings"]
    assert table == {"security_protocol": "SASL_SSL", "sasl_plain_password": "${HUSH}"}
    options = cluster_options.GraphStreamOptions(
        kafka_settings=_config.Table(table, config, "kafka.settings")
    )
    assert options.arguments()["kafka_settings"] == {
        "security_protocol": "SASL_SSL", "sasl_plain_password": "very secret",
    }  # fmt: skip
    assert cluster_options.GraphStreamOptions().arguments()["kafka_settings"] is None


def test_numbers_where_an_option_takes_text(tmp_path: Path) -> None:
    config = written(tmp_path, """\
source.path = "s.log"
records.window = 86400
serve.address = 8080
batches.interval = inf
""")  # fmt: skip
    told = run("ingest", "--config", config, "--write-config").stdout
    found = tomllib.loads(told)
    assert (found["records"], found["serve"]) == ({"window": "86400"}, {"address": "8080"})
    assert found["batches"] == {"interval": float("inf")}


def test_other_commands_take_the_same_file(tmp_path: Path) -> None:
    config = written(tmp_path, """\
[source]
path = "shared.log"
[serve]
address = "0"
insecure = true
[cluster]
shards = 2
engine = "local"
[checkpoints]
directory = "state"
interval = 5
""")  # fmt: skip
    served = tomllib.loads(run("serve", "g.lpma", "--config", config, "--write-config").stdout)
    assert served == {"serve": {"address": "0", "insecure": True}}
    told = run("cluster", "run", "--config", config, "--write-config").stdout
    sharded = tomllib.loads(told)
    assert sharded["cluster"] == {"shards": 2}
    assert sharded["checkpoints"] == {"directory": str(tmp_path / "state"), "interval": 5.0}
    assert "SOURCE" in run("cluster", "run", "--shards", 2, status=2).stderr


def test_a_key_is_said_on_the_command_line(tmp_path: Path) -> None:
    config = written(tmp_path, "records.late = 'apply'\nbatches.size = 7\nkafka.settings.a = 1")
    given: list[Any] = ["ingest", "--kafka", "h:1", "--config", config, "--batch-size", 9]
    for key in (
        "records.late=reject", "records.window=5", "batches.size=8", "graph.times=false",
        "outputs.reply_topics=r", "kafka.settings.client_id=x", "kafka.settings.b=2",
    ):  # fmt: skip
        given += ["--set", key]
    found = tomllib.loads(run(*given, "--write-config").stdout)
    assert found["records"] == {"late": "reject", "window": "5"}
    assert (found["batches"], found["graph"]) == ({"size": 9}, {"times": False})
    assert found["outputs"] == {"reply_topics": ["r"]}
    assert found["kafka"]["settings"] == {"a": 1, "client_id": "x", "b": 2}


@pytest.mark.parametrize("said, told", [
    ("graph.tims=false", "graph.tims=false: no such setting: did you mean graph.times?"),
    ("graph.times=7", "graph.times: expected `bool"),
    ("graph.times", "expected KEY=VALUE"),
    ("cluster.shards=2", "no such setting"),
    ("records.max_lateness=-1", "records.max_lateness: expected `int` >= 0"),
])  # fmt: skip
def test_a_wrong_key_is_told(said: str, told: str) -> None:
    error = joined(run("ingest", "x.log", "--set", said, status=2).stderr)
    assert joined(f"Invalid value for --set: {told}") in error or joined(told) in error


@pytest.mark.parametrize("command, option, key", [
    ("ingest", "--late", "records.late"), ("ingest", "--no-times", "graph.times"),
    ("ingest", "--ids", "records.names"), ("serve", "--tls-cert", "serve.tls_cert"),
    ("ingest", "--rate", "file.rate"), ("ingest", "--decimal", "file.decimal"),
    ("ingest", "--kind-map", "fields.kinds"), ("ingest", "--max-hops", "batches.max_hops"),
    ("ingest", "--weight-dtype", "graph.weight_dtype"), ("ingest", "--group", "kafka.group"),
    ("ingest", "--from-store", "graph.from_store"), ("ingest", "--insecure", "serve.insecure"),
    ("ingest", "--accept-gap", "checkpoints.accept_gap"), ("ingest", "--log-json", "run.log_json"),
    ("ingest", "--token-file", "serve.token_file"),
])  # fmt: skip
def test_an_option_that_went_names_its_key(command: str, option: str, key: str) -> None:
    told = run(command, "x.log", option, "x", status=2).stderr
    assert joined(f"{option}: a setting that is no option: --set {key}=VALUE") in joined(told)


def test_a_stream_goes_on_as_it_was_last_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing but its directory; options given win, and what differs is told."""
    monkeypatch.chdir(tmp_path)
    edges, state = tmp_path / "a.csv", tmp_path / "state"
    edges.write_text("from,to,amount\n" + "".join(f"{i},{i + 1},2\n" for i in range(10)))
    first = document("ingest", "a.csv", "-c", "state", "--target", "from", "--source", "to",
                     "--weight", "amount",
                     "--batch-size", 2, "--limit", 2, "--track", "core",
                     "--results-file", "cores.jsonl")  # fmt: skip
    assert first["operations"] == 2
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    rest = run("ingest", "-c", state, "--batch-size", 3, "--limit", 3, "--json")
    assert "batches.size is 3, it was 2" in rest.stderr
    assert document("ingest", "-c", state)["total_operations"] == 10
    assert document("query", "edge", state, 5, 4)["results"][0]["weight"] == 2
    told = (tmp_path / "cores.jsonl").read_text()
    assert "core" in told
    assert sorted(p.name for p in other.iterdir()) == []
    assert tomllib.loads((state / "stream.toml").read_text())["batches"] == {"size": 3}
    run("ingest", "-c", tmp_path / "nothing", status=2)


LAST_TIME = (
    "--track", "core", "--alert", "core >= 1", "--results-file", "cores.jsonl",
    "--changes-topic", "changes", "--set", "records.late=reject",
)  # fmt: skip


def kept_of(state: Path) -> dict[str, Any]:
    return tomllib.loads((state / "stream.toml").read_text())


def test_the_source_alone_goes_on_as_last_time_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures, alerts and the edge feed do not end because a command line left them out; what it
    gives wins."""
    monkeypatch.chdir(tmp_path)
    state = tmp_path / "state"
    with ingest.SqliteLog("x.log") as log:
        log.produce_many("updates", [ingest.encode_row(0, n) for n in range(1, 4)])
        document("ingest", "x.log", "-c", "state", *LAST_TIME)
        before, published = kept_of(state), len(Path("cores.jsonl").read_text().splitlines())
        log.produce("updates", ingest.encode_row(1, 2))
        rest = run("ingest", "./x.log", "-c", "state", "--json")
        found = json.loads(rest.stdout)
        assert (found["operations"], found["changes"]["records"]) == (1, 1)
        assert len(Path("cores.jsonl").read_text().splitlines()) > published
        told = [line for line in rest.stderr.splitlines() if "as last time" in line]
        assert told == [
            f"lpma: as last time: --results-file {tmp_path / 'cores.jsonl'}, --changes-topic "
            "changes, --track core, --alert 'core >= 1', records.late = \"reject\""
        ]
        assert kept_of(state) == before

        same = run("ingest", "x.log", "-c", "state", *LAST_TIME)
        assert "as last time" not in same.stderr
        assert "it was" not in same.stderr
        more = "--results-topic", "cores", "--alert", "core >= 5"
        other = run("ingest", "x.log", "-c", "state", *more)
        assert 'results.topic is "cores", it was not said' in other.stderr
        assert 'results.file is not said, it was "' in other.stderr
        assert 'results.alerts is ["core >= 5"], it was ["core >= 1"]' in other.stderr
        assert kept_of(state)["results"] == {
            "topic": "cores", "alerts": ["core >= 5"], "track": "core",
        }  # fmt: skip


def test_another_source_or_a_file_of_settings_says_everything_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        Path(name).write_text("1,2\n2,3\n")
    for state in ("other", "same"):
        document("ingest", "a.csv", "-c", state, "--track", "core")
    Path("other/stream.toml").write_text('source.path = "../b.csv"\nresults.track = "core"\n')
    assert "as last time" not in run("ingest", "a.csv", "-c", "other").stderr
    assert kept_of(tmp_path / "other")["results"] == {}
    config = written(tmp_path, 'source.path = "a.csv"\ncheckpoints.directory = "same"\n')
    assert "as last time" not in run("ingest", "--config", config).stderr
    assert kept_of(tmp_path / "same")["results"] == {}


@pytest.mark.parametrize("was, now, same", [
    ({"path": "a.log"}, {"path": "x/../a.log"}, True),
    ({"path": "a.log"}, {"path": "b.log"}, False),
    ({"path": "a.log"}, {"kafka": "h:1"}, False),
    ({"path": "a.log", "topics": ["t"]}, {"path": "a.log"}, True),
    ({"path": "a.log"}, {"path": "a.log", "topics": ["queries", "updates"]}, True),
    ({"kafka": "h:1,i:1"}, {"kafka": "i:1, h:1"}, True),
    ({"kafka": "h:1"}, {"kafka": "h:2"}, False),
    ({"kafka": "h:1", "topics": ["t"]}, {"kafka": "h:1", "topics": ["u"]}, False),
    ({"kafka": "h:1", "topics": [_ingest_options.Topic("t")]},
     {"kafka": "h:1", "topics": ["t"]}, True),
])  # fmt: skip
def test_what_the_same_source_is(was: dict[str, Any], now: dict[str, Any], same: bool) -> None:
    kinds = (_ingest_options.EndpointOptions,)
    known = _config.entries(kinds, {}, inspect.signature(lambda: None))
    known["source.path"] = _config.Entry("source.path", "path", Path, "", None)
    for values in (was, now):
        if "path" in values:
            values["path"] = Path(values["path"])
    assert _config._is_same_source(known, now, was) is same


def test_where_a_stream_began_is_not_remembered(tmp_path: Path) -> None:
    edges = tmp_path / "a.csv"
    edges.write_text("1,2\n")
    for state, start in (("begun", ()), ("next", ("--set", f"graph.from_store={tmp_path}/begun"))):
        document("ingest", edges, "-c", tmp_path / state, *start)
    assert document("ingest", "-c", tmp_path / "next")["resumed"]
    assert document("ingest", edges, "-c", tmp_path / "next")["resumed"]


def test_a_stream_remembers_where_secrets_are(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("also secret\n")
    config = written(tmp_path, """\
kafka.servers = "h:1"
kafka.settings = {sasl_plain_password = "${HUSH}", ssl_password_file = "key"}
checkpoints.directory = "state"
""")  # fmt: skip
    kinds = _ingest_options.EndpointOptions, _ingest_options.CheckpointOptions
    known = _config.entries(kinds, {}, inspect.signature(lambda: None))
    given = _config._from_file(config, known, set())
    (tmp_path / "state").mkdir()
    _config._remember(known, given)
    kept = tomllib.loads((tmp_path / "state" / "stream.toml").read_text())["kafka"]["settings"]
    assert kept == {
        "sasl_plain_password": "${HUSH}", "ssl_password_file": str(tmp_path / "key"),
    }  # fmt: skip


def test_every_option_has_a_key() -> None:
    kinds: list[Any] = [
        _options.GraphOptions, _ingest_options.RecordOptions, _ingest_options.EndpointOptions,
        _ingest_options.CheckpointOptions, _ingest_options.StreamOptions,
        _ingest_options.OF_SETTINGS, _serve_options.ServeOptions, cluster_options.ShardOptions,
        cluster_options.GraphStreamOptions, cluster_options.KeepingOptions,
    ]  # fmt: skip
    for kind in kinds:
        names = {field.name for field in fields(kind)} - FOR_THE_COMMAND_LINE_ALONE
        assert names == set(_config.keys_of(kind))
        keys = list(_config.keys_of(kind).values())
        assert len(set(keys)) == len(keys)


def test_other_topics_than_last_time_hint_at_the_directory_alone(tmp_path: Path) -> None:
    with ingest.SqliteLog(tmp_path / "x.log") as log:
        for topic in ("a", "updates"):
            log.create_topic(topic)
            log.produce(topic, ingest.encode_row(1, 2))
    state = tmp_path / "state"
    assert document("ingest", tmp_path / "x.log", "--topic", "a", "-c", state)["operations"] == 1
    other = "ingest", tmp_path / "x.log", "--topic", "updates", "-c", state
    told = run(*other, status=1).stderr
    assert "topic 'a' of the checkpoint is not in this source, which reads 'updates'" in told
    assert f"`lpma ingest -c {state}` alone goes on as this stream was last run" in told
    assert document("ingest", "-c", state)["resumed"]
