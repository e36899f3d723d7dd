"""A real Apache Kafka for the tests: one node in KRaft mode on 127.0.0.1, to be hurt at will.

    broker = Broker(directory)
    broker.start() … broker.stop(), kill(), stall(), resume() …

It starts in some seconds with little: a heap of at most 512 MB, the serial collector, no second
compiler, and the classes it loads as `prepare` left them, laid out beside the jars. As brokers do
by default, it makes a topic that a client asks about, unless the client says not to. The data lasts
from `stop` or `kill` to the next `start`, on the same ports.
"""

from __future__ import annotations

import base64
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import IO, Self

from tests.support.broker.cluster import Cluster
from tests.support.broker.jars import Unavailable, directory, fetch
from tests.support.waiting import HANGS_S

__all__ = ["PASSWORD", "USER", "Broker", "Cluster", "Unavailable", "group_lags", "prepare"]

USER, PASSWORD = "reader", "hush-hush"  # of the SASL listener, mechanism PLAIN


# What is kept beside the jars, in a folder.
KEPT, FORMAT, CLASSES = "prepared", "bootstrap.checkpoint", "classes.jsa"

# C1 alone and one collector thread: a broker that lives for seconds is mostly start-up.
_JAVA = ("-Xmx512m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_PROPERTIES = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN,OAUTHBEARER
listener.name.sasl.plain.sasl.jaas.config={jaas} required user_{user}="{password}";
listener.name.sasl.oauthbearer.sasl.jaas.config={oauth} required unsecuredLoginStringClaim_sub="x";
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=1
min.insync.replicas=1
default.replication.factor=1
offsets.topic.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
log.index.size.max.bytes=1048576
log.cleaner.dedupe.buffer.size=8388608
log.cleaner.backoff.ms=100
log.segment.delete.delay.ms=100
num.network.threads=2
num.io.threads=4
"""


class Broker:
    """A broker that keeps its data in `directory`. `properties` are added to its server.properties.

    Raises Unavailable where there is no Java or no Kafka, or where it does not start."""

    def __init__(self, directory: Path, properties: str = "") -> None:
        self._directory = directory
        self._port, self._sasl, self._controller = _free_ports(3)
        self.bootstrap = f"127.0.0.1:{self._port}"
        self.sasl_bootstrap = f"127.0.0.1:{self._sasl}"
        self.config = directory / "server.properties"
        self._properties = properties
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers on its port."""
        kept = _kept()
        if not self.config.exists():
            self.configure()
            data = self._directory / "data"
            data.mkdir()
            shutil.copy(kept / FORMAT, data)
            named = f"cluster.id={_id()}\ndirectory.id={_id()}\n"
            (data / "meta.properties").write_text(f"version=1\nnode.id=1\n{named}")
        self.launch(f"-XX:SharedArchiveFile={kept / CLASSES}")

    def launch(self, option: str) -> None:
        """Run Java with one more option, and wait until there is an answer on the port."""
        assert self._process is None, "it runs already"
        command = [*_java(directory(), option), "kafka.Kafka", str(self.config)]
        log: IO[bytes]
        with open(self._directory / "broker.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + HANGS_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise Unavailable(f"Kafka did not start: {self._last_words()}")
            time.sleep(0.02)

    def configure(self) -> None:
        """Write its server.properties."""
        self._directory.mkdir(parents=True, exist_ok=True)
        filled = _PROPERTIES.format(
            port=self._port,
            sasl=self._sasl,
            controller=self._controller,
            data=self._directory / "data",
            jaas="org.apache.kafka.common.security.plain.PlainLoginModule",
            oauth="org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
            user=USER,
            password=PASSWORD,
        )
        self.config.write_text(filled + self._properties)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def _last_words(self) -> str:
        lines = (self._directory / "broker.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # a stalled one would never hear it
        try:
            process.wait(HANGS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stall(self) -> None:
        """Let it hang: its connections stay open and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `stall`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()


def group_lags(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    """What Kafka's own tool says each partition lags behind, in a group without members."""
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    command = [*_java(directory()), tool, "--bootstrap-server", bootstrap, "--describe"]
    done = subprocess.run([*command, "--group", group], check=True, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(group)]
    return {(topic, int(number)): int(lag) for _, topic, number, _, _, lag, *_ in lines}


def prepare() -> None:
    """Fetch Kafka, and keep beside its jars what every broker would else do anew, which takes most
    of the time to start one: how its own tool formats a node, and Java's archive of the classes
    that a broker loads. Nothing where that is there. Raises Unavailable."""
    jars = fetch()
    final = jars / KEPT
    if final.is_dir():
        return
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix=".tmp-kafka-") as temporary:
        made, home = Path(temporary) / KEPT, Path(temporary) / "broker"
        made.mkdir()
        broker = Broker(home)
        broker.configure()
        tool = [*_java(jars), "kafka.tools.StorageTool", "format"]
        try:
            subprocess.run(
                [*tool, "-t", _id(), "-c", str(broker.config)], check=True, capture_output=True
            )
            shutil.copy(home / "data" / FORMAT, made)
            broker.launch(f"-XX:ArchiveClassesAtExit={made / CLASSES}")
            broker.stop()
            (made / CLASSES).stat()  # it ended in order, and not for want of time
            made.rename(final)
        except (OSError, subprocess.CalledProcessError) as error:
            if not final.is_dir():  # another run may have been first
                raise Unavailable(f"Kafka cannot be prepared: {error}") from error


def _kept() -> Path:
    kept = directory() / KEPT
    if not kept.is_dir():
        raise Unavailable(f"no Kafka in {kept}: `python -m tests.support.broker` makes it")
    return kept


def _java(jars: Path, *options: str) -> list[str]:
    if shutil.which("java") is None:
        raise Unavailable("java is not installed: install Java 17 or newer")
    return ["java", *_JAVA, *options, "-cp", f"{jars}/*"]


def _id() -> str:
    """A new one. With a byte of 0 in front, none begins with "-", which the tool takes for an
    option."""
    return base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).rstrip(b"=").decode()


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now. All are held until all are known, so they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
