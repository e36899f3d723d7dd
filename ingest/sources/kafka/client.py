"""How kafka-python is used: one way to connect, what a caller may set, what errors say.

Nothing outside this folder imports kafka-python. Requires 3.0.12 or newer, below 3.1, and the C
checksum of the extra [kafka]: the one in Python takes 10 ms for 80 KB.

A caller passes settings that say how to reach the brokers (TLS, SASL, time-outs), by kafka-python's
names. All others are chosen here and in the two modules, because the pipeline's guarantees depend
on them. Secrets stay in the settings: no message, log line or repr shows these.
"""

from __future__ import annotations

import errno
import logging
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lpma.dependencies import how_to_install

from ...errors import AwayError, RecordError, SourceError
from ...formats.msgpack import topic_name
from . import clock

try:
    import crc32c  # noqa: F401 - kafka-python silently uses its own otherwise
    from kafka import KafkaConsumer, codec
    from kafka.errors import (
        InvalidProducerEpochError,
        KafkaError,
        KafkaTimeoutError,
        NoError,
        ProducerFencedError,
        TopicAlreadyExistsError,
        UnsupportedCodecError,
        for_code,
    )
    from kafka.net.compat import KafkaNetClient
    from kafka.protocol.admin import CreateTopicsRequest
except ImportError as error:
    raise SourceError(
        f"Kafka needs kafka-python 3.0 and crc32c ({error}): {how_to_install('kafka')}"
    ) from error

from .signing_in import with_sign_in  # isort: skip  # it needs kafka-python, too

CONNECT_TIMEOUT_S = 4.0  # then another connection is tried
_KNOCK_TIMEOUT_S = 1.0  # to learn why a broker does not let a client in
_HANDSHAKE_GRACE_S = 1.0  # beyond it, before a connection is given up from outside
METADATA_TIMEOUT_S = 5.0  # for one answer about topics
PROBE_TIMEOUT_S = 5.0

# What TLS reports if settings are wrong; other failures of a handshake may come from a restart.
_WRONG_TLS = frozenset({"CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER"})

# These write what is sent to the brokers into the log at DEBUG: passwords, too.
_TALKATIVE = ("kafka.net.connection", "kafka.protocol.parser")

SETTINGS = frozenset(
    {
        "api_version", "client_dns_lookup", "client_id", "client_rack", "compression_type",
        "connections_max_idle_ms",
        "proxy_url", "receive_buffer_bytes", "request_timeout_ms", "sasl_kerberos_domain_name",
        "sasl_kerberos_name", "sasl_kerberos_service_name", "sasl_mechanism",
        "sasl_oauth_client_id", "sasl_oauth_client_secret", "sasl_oauth_scope",
        "sasl_oauth_token_endpoint", "sasl_oauth_token_provider", "sasl_plain_password",
        "sasl_plain_username",
        "security_protocol", "send_buffer_bytes", "socket_options", "ssl_cafile", "ssl_certfile",
        "ssl_check_hostname", "ssl_ciphers", "ssl_context", "ssl_crlfile", "ssl_keyfile",
        "ssl_password",
    }
)  # fmt: skip

# Overridden by what a caller passes. A broker that comes back is found again within a second.
_DEFAULTS: Mapping[str, Any] = {"client_id": "lpma", "request_timeout_ms": 10_000}
_OURS: Mapping[str, Any] = {
    "allow_auto_create_topics": False,
    "metadata_max_age_ms": 10_000,  # how long a new partition may go unseen
    "metrics_enabled": False,
    "reconnect_backoff_max_ms": 1000,
}


class NoTransactionsError(KafkaTimeoutError):
    """The brokers began no transaction in time."""


def _above_debug(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG


for _name in _TALKATIVE:
    logging.getLogger(_name).addFilter(_above_debug)


def may_pass(error: Exception) -> bool:
    """Whether it is worth asking the brokers again after an error."""
    return isinstance(error, AwayError) or bool(getattr(error, "retriable", False))


def checked_settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings as `connect` takes them. Raises SourceError for one that is not the caller's to
    make, or that lacks another."""
    given = dict(settings or {})
    if refused := given.keys() - SETTINGS:
        raise SourceError(
            f"Kafka settings {', '.join(sorted(map(str, refused)))}: cannot be set here; these "
            f"can: {', '.join(sorted(SETTINGS))}"
        )
    usable = codecs()
    if (name := given.get("compression_type")) is not None and not usable.get(name):
        wrong = f"is none of {', '.join(usable)}"
        if name in usable:
            wrong = f"cannot be written here: {_CODECS}"
        raise SourceError(f"Kafka setting compression_type: {name!r} {wrong}")
    return with_sign_in(given)


def codecs() -> dict[str, bool]:
    """Whether records that are compressed so can be read and written, by codec."""
    return {name: getattr(codec, f"has_{name}")() for name in ("gzip", "lz4", "snappy", "zstd")}


def checked_topics(topics: Sequence[str]) -> tuple[str, ...]:
    """The topics, each once. Raises SourceError if one cannot be a topic or there is none."""
    if isinstance(topics, str) or not topics:
        raise SourceError("topics: expected a sequence of one or more names")
    try:
        return tuple(dict.fromkeys(topic_name(topic) for topic in topics))
    except (RecordError, TypeError) as error:
        raise SourceError(f"topics: {error}") from None


def checked_bootstrap(bootstrap: str | Sequence[str]) -> str:
    """ "host:port,host:port". Raises SourceError if a part has another form."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    parts = [part.strip() for part in parts]
    if not parts or not all(re.fullmatch(r"[^\s,/]+:\d{1,5}", part) for part in parts):
        raise SourceError(f"bootstrap: expected host:port,host:port …, not {','.join(parts)!r}")
    return ",".join(parts)


def connect(
    kind: Callable[..., Any],
    bootstrap: str,
    settings: Mapping[str, Any],
    timeout: float = CONNECT_TIMEOUT_S,
    **ours: Any,
) -> tuple[Any, KafkaNetClient]:
    """A KafkaConsumer or KafkaProducer that has reached a broker, and the client within it.

    Raises AwayError if none answers within `timeout` seconds, SourceError if one refuses."""
    clients: list[KafkaNetClient] = []
    # A consumer knows no setting of what is written: a producer is given it by itself.
    read_and_written = {name: settings[name] for name in settings.keys() - {"compression_type"}}

    def make_client(**config: Any) -> KafkaNetClient:
        # Its loop would warn of every slow name lookup, and whenever the machine is busy.
        client = KafkaNetClient(**config, slow_task_threshold_secs=0)
        # 3.0.12 does not pass this on: asking about a topic would create it.
        client.cluster.config["allow_auto_create_topics"] = False
        clients.append(client)
        return client

    given_up = threading.Event()

    def give_up() -> None:
        given_up.set()
        for client in clients:
            with suppress(RuntimeError):  # its own thread polls, and sees its time-out by itself
                client.close()

    # Nothing in 3.0.12 limits how long a TLS handshake waits for a broker that says nothing.
    watchdog = threading.Timer(timeout + _HANDSHAKE_GRACE_S, give_up)
    watchdog.daemon = True
    watchdog.start()
    try:
        try:
            made = kind(
                bootstrap_servers=bootstrap,
                bootstrap_timeout_ms=round(timeout * 1000),
                kafka_client=make_client,
                **{**_DEFAULTS, **read_and_written, **_OURS, **ours},
            )
        except Exception as error:  # noqa: BLE001 - kafka-python raises anything on bad settings
            cause: Exception = error
        else:
            return made, clients[0]
        # Behind the handler: within it an error would lose that of TLS, for which it was raised.
        for client in clients:
            if isinstance(cause, KafkaTimeoutError):
                cause = _refusal(client) or cause
            client.close()
    finally:
        watchdog.cancel()
    if given_up.is_set():
        cause = AwayError(f"no answer within {timeout:g} s")
    kind_of_error = AwayError if _is_away(cause) else SourceError
    raise kind_of_error(
        f"{bootstrap}: no Kafka could be reached: {said(cause)}; check the address and the TLS "
        "and SASL settings (brokers hang up on wrong ones)"
    )


def _is_away(cause: Exception) -> bool:
    """Whether this looks like brokers that are away, rather than wrong settings."""
    if any(isinstance(e, ssl.SSLError) and e.reason in _WRONG_TLS for e in _behind(cause)):
        return False
    if isinstance(cause, OSError):
        few_files = cause.errno in (errno.EMFILE, errno.ENFILE)
        return few_files or isinstance(cause, ConnectionError | TimeoutError)
    return may_pass(cause)


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those that it was raised for: kafka-python puts one of TLS into another."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _refusal(client: KafkaNetClient) -> Exception | None:
    """Why a broker does not let the client in: kafka-python reports only that it timed out, so the
    first broker is tried once more by hand."""
    manager = client._manager
    node = client.cluster.bootstrap_brokers()[0].node_id
    manager.reset_backoff(node)

    async def knock() -> None:
        await manager.get_connection(
            node,
            timeout_ms=_KNOCK_TIMEOUT_S * 1000,
            pop_on_close=False,
            refresh_metadata_on_err=False,
        )

    try:
        client._net.run(knock)
    except Exception as error:  # noqa: BLE001 - the point is to learn what is raised
        return error
    return None


_REPLACED = (
    "another one writes there by now, in transactions of the same name: keep only one of the two "
    "pipelines, or give each a topic of its own for results"
)
_CODECS = f"a library for this codec is missing: {how_to_install('kafka')}"
_ADVICE: Mapping[type[BaseException], str] = {
    UnsupportedCodecError: _CODECS,
    ProducerFencedError: _REPLACED,
    InvalidProducerEpochError: _REPLACED,
    NoTransactionsError: (
        "the brokers' transaction log cannot be made or does not answer: there must be as many "
        "brokers as transaction.state.log.replication.factor says, which is 3 unless it is set "
        "(and transaction.state.log.min.isr, 2, in sync): start more, or set both lower"
    ),
}


def said(error: BaseException) -> str:
    """What an error of kafka-python says, in one line, and what to do where it does not say so."""
    name, text = type(error).__name__, " ".join(str(error).split())[:500]
    text = text.rpartition(f"{name}: ")[2] if name in text else text
    if isinstance(error, SourceError):
        return text
    advice = _ADVICE.get(type(error))
    return f"{name}: {text}" if advice is None else f"{name}: {text}: {advice}"


def answered(future: Any, timeout: float) -> Any:
    """The value of a kafka-python future. Raises its error, AwayError if it takes longer."""
    event = threading.Event()
    future.add_both(lambda _: event.set())
    if not event.wait(timeout):
        raise AwayError(f"the brokers did not answer within {timeout:g} s")
    if future.failed():
        raise future.exception
    return future.value


def look_up(client: KafkaNetClient, topics: Sequence[str], grace: float = 1.0) -> list[str]:
    """Ask the brokers about topics; returns those that are missing even after `grace` seconds: one
    may just have been created. The answer is then in `client.cluster`. Raises AwayError if no
    answer comes, KafkaError if it is a refusal."""
    cluster = client.cluster
    started = clock.now()
    for topic in topics:
        cluster.add_topic(topic)
    while True:
        # Not `request_update`, which waits for 100 ms to pass since the answer before.
        update = client._manager.call_soon(cluster.refresh_metadata)
        client.wakeup()
        answered(update, METADATA_TIMEOUT_S)
        absent = [topic for topic in topics if cluster.partitions_for_topic(topic) is None]
        if not absent or clock.now() - started >= grace:
            return absent
        clock.sleep(0.1)


def create_topic(client: KafkaNetClient, name: str, partitions: int | None = None) -> None:
    """Make a topic with so many partitions, None for the brokers' default; does nothing if it
    exists. Raises AwayError if no answer comes, KafkaError if it is a refusal."""
    creatable = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[creatable(name=name, num_partitions=partitions or -1, replication_factor=-1)],
        timeout_ms=round(METADATA_TIMEOUT_S * 1000),
    )

    async def ask() -> Any:
        return await client._manager.send(request, node_id=client.least_loaded_node())

    # Any broker passes it on to the controller.
    future = client._manager.call_soon(ask)
    client.wakeup()
    (topic,) = answered(future, METADATA_TIMEOUT_S).topics
    error = for_code(topic.error_code)
    if error not in (NoError, TopicAlreadyExistsError):
        raise error(topic.error_message or f"topic {name}")


def probe(
    bootstrap: str | Sequence[str], settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the brokers report, for people who set one up: the cluster, the brokers, the visible
    topics. Raises SourceError if none is reached."""
    bootstrap = checked_bootstrap(bootstrap)
    consumer, client = connect(
        KafkaConsumer, bootstrap, checked_settings(settings), PROBE_TIMEOUT_S, group_id=None
    )
    try:
        topics = sorted(consumer.topics())
        brokers = sorted(f"{b.host}:{b.port}" for b in client.cluster.brokers())
        return {"cluster": client.cluster.cluster_id, "brokers": brokers, "topics": topics}
    except KafkaError as error:
        raise SourceError(f"{bootstrap}: the brokers refused: {said(error)}") from None
    finally:
        consumer.close(autocommit=False, timeout_ms=0)
