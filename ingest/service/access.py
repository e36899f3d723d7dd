"""Who may do what: tokens, the hosts that the service goes by, and TLS.

Two tokens are kept apart: one reads, the other writes and reads. Without any, whoever can connect
may do everything, which is right for loopback alone: `Access.check_public` refuses it elsewhere.
A token comes from a file or the environment, never from the command line, where every user of the
machine would see it, and it is in no repr.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import ssl
import stat
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from ..errors import PipelineError

MIN_TOKEN = 16  # characters
MAX_TOKEN = 1024
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what a header may carry (RFC 6750)


class Right(IntEnum):
    """What a token allows. Each includes those before it."""

    NOTHING = 0
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Access:
    """Who may do what.

    read_token, write_token: None if there is none. allow_hosts: names, beside loopback's and that
    of the address, that clients may call the service by. certificate, key: files in PEM.
    insecure: allow an address that is not loopback without tokens or TLS."""

    read_token: str | None = field(default=None, repr=False)
    write_token: str | None = field(default=None, repr=False)
    allow_hosts: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        for token in (self.read_token, self.write_token):
            if token is not None:
                check_token(token, "a token")
        if self.read_token is not None and self.read_token == self.write_token:
            raise PipelineError("the tokens to read and to write are the same: make two")
        if (self.certificate is None) != (self.key is None):
            raise PipelineError("TLS needs both --tls-cert and --tls-key")

    @property
    def is_open(self) -> bool:
        """Whether nobody is asked for a token."""
        return self.read_token is None and self.write_token is None

    def check_public(self, host: str) -> None:
        """Raise PipelineError if this is not enough for an address that is not loopback."""
        lacking = []
        if self.is_open:
            lacking.append("a token (--token-file, --write-token-file)")
        if self.certificate is None:
            lacking.append("TLS (--tls-cert, --tls-key)")
        if lacking and not self.insecure:
            raise PipelineError(
                f"{host} can be reached from other machines, which needs {' and '.join(lacking)}; "
                "or --insecure, where something else protects it"
            )

    def risks(self, host: str) -> list[str]:
        """What --insecure allows, in words, for an address that is not loopback."""
        found = []
        if self.is_open:
            found.append(f"whoever can reach {host} may read and write the graph: no token is set")
        if self.certificate is None:
            found.append(f"what is sent to {host} can be read on the way, tokens too: no TLS")
        return found

    def right_of(self, token: bytes | None) -> Right:
        """What a client may do that gave this token; None if it gave none. Takes as long for a
        wrong token as for a right one."""
        if self.is_open:
            return Right.WRITE
        given = _digest(b"" if token is None else token)
        may_write = _is_same(given, self.write_token)
        may_read = _is_same(given, self.read_token)
        return Right.WRITE if may_write else Right.READ if may_read else Right.NOTHING

    def tls_context(self) -> ssl.SSLContext | None:
        """TLS 1.2 or newer with the certificate; None for plain HTTP. Raises PipelineError."""
        if self.certificate is None or self.key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # A key with a password would have OpenSSL ask for it on the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")
        except OSError as error:  # ssl.SSLError is one
            raise PipelineError(
                f"{self.certificate}, {self.key}: no certificate with its key, in PEM and without "
                f"a password: {error.strerror or error}"
            ) from error
        context.set_alpn_protocols(["http/1.1"])
        return context


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _is_same(given: bytes, token: str | None) -> bool:
    same = secrets.compare_digest(given, _digest((token or "").encode()))
    return same and token is not None


def check_token(token: str, what: str) -> None:
    """Raise PipelineError, without the token, if it is too short or a header cannot carry it."""
    if not MIN_TOKEN <= len(token) <= MAX_TOKEN or not _TOKEN.fullmatch(token):
        raise PipelineError(
            f"{what} has {MIN_TOKEN} to {MAX_TOKEN} letters, digits and - . _ ~ + /: "
            "`openssl rand -hex 32` makes one"
        )


def read_token(path: Path) -> str:
    """The token in a file, whose one line it is. Raises PipelineError, OSError."""
    token = path.read_text("ascii", "replace").strip()
    check_token(token, f"{path}: a token")
    return token


def readable_by_others(path: Path) -> bool:
    """Whether other users of the machine may read a file."""
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
