"""Settings of Kafka in a file, so that no secret appears on a command line.

    security_protocol = SASL_SSL
    ssl_cafile = ca.pem
    sasl_mechanism = SCRAM-SHA-512
    sasl_plain_username = graph
    sasl_plain_password = ${KAFKA_PASSWORD}
    ssl_password_file = /run/secrets/key-password

    file  := JSON object of name: value | lines
    line  := name "=" value | "#" comment | nothing; blanks around each part do not count
    name  := a setting by kafka-python's name, or that with "_file" appended
    value := text; ${NAME} in it stands for the environment's variable NAME

A name with "_file" appended names a file that holds the value, without the end of its line. Paths
are relative to the file they stand in. Values are converted to numbers and booleans as needed;
settings that are Python objects cannot be given in a file. No message shows a value: a mistake is
reported by line and name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import SourceError

MAX_BYTES = 1 << 20

_NUMBERS = {
    "connections_max_idle_ms", "receive_buffer_bytes", "request_timeout_ms", "send_buffer_bytes",
}  # fmt: skip
_SWITCHES = {"ssl_check_hostname": {"true": True, "false": False}}
_PATHS = {"ssl_cafile", "ssl_certfile", "ssl_crlfile", "ssl_keyfile"}
_OBJECTS = {"api_version", "sasl_oauth_token_provider", "socket_options", "ssl_context"}
_SECRET = re.compile("password|secret")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def read_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The settings in a file, for `KafkaSource`, `KafkaSink` and `Client.kafka`. Raises SourceError
    if it cannot be read, or names a variable or a file that is not there."""
    path = Path(path)
    text = _text_of(path)
    return _settings(path, _json(path, text) if text.startswith("{") else _lines(path, text))


def settings_of(
    content: Mapping[str, Any], path: Path, table: str, secret: re.Pattern[str] = _SECRET
) -> dict[str, Any]:
    """The same of a table of a larger file, which others may read: a secret, of a name in which
    `secret` is found, is only referred to there."""
    if said := secret_in(content, secret):
        raise SourceError(f"{path}: {table}.{said}")
    return _settings(path, ((f"{path}: {table}", *pair) for pair in content.items()))


def secret_in(content: Mapping[str, Any], secret: re.Pattern[str] = _SECRET) -> str:
    """Why a table is refused that has a secret itself; "" for one that only refers to secrets."""
    for name, value in content.items():
        is_secret = secret.search(name) and not name.endswith("_file")
        if is_secret and not _VARIABLE.fullmatch(str(value)):
            return (
                f"{name}: a secret does not stand here: give ${{NAME}}, a variable of the "
                f"environment, or {name}_file, the name of a file that holds it"
            )
    return ""


def _settings(path: Path, given: Iterable[tuple[str, str, Any]]) -> dict[str, Any]:
    """given: (place, name, value) of each setting."""
    settings: dict[str, Any] = {}
    for place, name, value in given:
        where = f"{place}: {name}"
        value = _expanded(where, value) if isinstance(value, str) else value
        if name.endswith("_file"):
            name = name.removesuffix("_file")
            value = _text_of(_beside(path, where, value))
        if name in settings:
            raise SourceError(f"{where}: given twice; leave one out")
        settings[name] = _typed(path, where, name, value)
    return settings


def _text_of(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise SourceError(f"{path}: larger than {MAX_BYTES} bytes, so not a file of settings")
        return data.decode().strip()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SourceError(f"{path}: not UTF-8 text") from None


def _lines(path: Path, text: str) -> Iterator[tuple[str, str, Any]]:
    """(place, name, value) of each setting."""
    for number, line in enumerate(text.splitlines(), 1):
        name, sign, value = (part.strip() for part in line.partition("="))
        if not name or name.startswith("#"):
            if sign and not name:
                raise SourceError(f"{path}:{number}: a value without a name")
            continue
        if not sign:
            raise SourceError(f"{path}:{number}: expected name = value")
        yield f"{path}:{number}", name, value


def _json(path: Path, text: str) -> Iterator[tuple[str, str, Any]]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: not JSON: {error}") from None
    for name, value in pairs:
        if isinstance(value, list | None):
            raise SourceError(f"{path}: {name}: expected text, a number, true or false")
        yield str(path), name, value


def _expanded(where: str, value: str) -> str:
    def variable(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise SourceError(f"{where}: the environment has no variable {match[1]}")
        return found

    return _VARIABLE.sub(variable, value)


def _typed(path: Path, where: str, name: str, value: Any) -> Any:
    if name in _OBJECTS:
        raise SourceError(f"{where}: cannot be given in a file; pass it from Python")
    if name in _SWITCHES:
        value = _SWITCHES[name].get(str(value).lower())
        if value is None:
            raise SourceError(f"{where}: expected true or false")
        return value
    if name in _NUMBERS:
        if not re.fullmatch(r"\d{1,18}", str(value)):
            raise SourceError(f"{where}: expected a whole number")
        return int(value)
    if not isinstance(value, str):
        raise SourceError(f"{where}: expected text")
    return str(_beside(path, where, value)) if name in _PATHS else value


def _beside(path: Path, where: str, name: Any) -> Path:
    if not isinstance(name, str) or not name:
        raise SourceError(f"{where}: expected the name of a file")
    return path.parent / name
