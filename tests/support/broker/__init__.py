"""A real Apache Kafka for the tests: one node in KRaft mode on 127.0.0.1, to be hurt at will.

    broker = Broker(directory)
    broker.start() … broker.stop(), kill(), stall(), resume() …

It starts in some seconds with little: a heap of at most 512 MB, the serial collector, no second
compiler. As brokers do by default, it makes a topic that a client asks about, unless the client
says not to. The data lasts from `stop` or `kill` to the next `start`, on the same ports.
"""

from __future__ import annotations

import base64
import shutil
import signal
import socket
import subprocess
import time
import uuid
from pathlib import Path
from typing import IO, Self

from tests.support.broker.cluster import Cluster
from tests.support.broker.jars import Unavailable, directory

__all__ = ["PASSWORD", "USER", "Broker", "Cluster", "Unavailable"]

USER, PASSWORD = "reader", "hush-hush"  # of the SASL listener, mechanism PLAIN

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0

# C1 alone and one collector thread: a broker that lives for seconds is mostly start-up.
_JAVA = ("-Xmx512m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_PROPERTIES = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config={jaas} required user_{user}="{password}";
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
        self._properties = properties
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers on its port."""
        assert self._process is None, "it runs already"
        config = self._directory / "server.properties"
        if not config.exists():
            self._format(config)
        log: IO[bytes]
        with open(self._directory / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                [*_java(), "kafka.Kafka", str(config)], stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise Unavailable(f"Kafka did not start: {self._last_words()}")
            time.sleep(0.02)

    def _format(self, config: Path) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        filled = _PROPERTIES.format(
            port=self._port,
            sasl=self._sasl,
            controller=self._controller,
            data=self._directory / "data",
            jaas="org.apache.kafka.common.security.plain.PlainLoginModule",
            user=USER,
            password=PASSWORD,
        )
        config.write_text(filled + self._properties)
        # With a byte of 0 in front, no id begins with "-", which the tool takes for an option.
        cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).rstrip(b"=").decode()
        tool = [*_java(), "kafka.tools.StorageTool", "format", "--standalone"]
        subprocess.run([*tool, "-t", cluster, "-c", str(config)], check=True, capture_output=True)

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
            process.wait(STOP_TIMEOUT_S)
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


def _java() -> list[str]:
    if shutil.which("java") is None:
        raise Unavailable("java is not installed: install Java 17 or newer")
    jars = directory()
    if not jars.is_dir():
        raise Unavailable(f"Kafka is not in {jars}: `python tests/broker/jars.py` fetches it")
    return ["java", *_JAVA, "-cp", f"{jars}/*"]


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
