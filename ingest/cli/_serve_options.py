"""Options of what is served over HTTP: who may do what, and TLS; and a service until it is closed.

Tokens come from files or from the environment, never from the command line, where every user of
the machine would see them. What is risky is said on stderr, once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lpma.dependencies import MissingPackage, how_to_install

from ..errors import PipelineError
from ._typer import option

if TYPE_CHECKING:
    from ..pipeline.pipeline import Pipeline
    from ..service.app import Service
    from ..service.context import Context
    from ..service.security import Access

SERVING = "Serving over HTTP"
TLS_AND_NAMES = "tls_cert", "tls_key", "allow_hosts"  # keys of the file alone
TOKEN, WRITE_TOKEN = "LPMA_TOKEN", "LPMA_WRITE_TOKEN"


_option = partial(option, panel=SERVING)


@dataclass(frozen=True)
class ServeOptions:
    """Who may use the service, and how it is reached."""

    token_file: Path | None = _option(
        "serve.token_file", "--token-file",
        help=f"The token that reading needs is in this file, or in ${TOKEN}.",
    )  # fmt: skip
    write_token_file: Path | None = _option(
        "serve.write_token_file", "--write-token-file",
        help=f"The token that writing needs, which may read too, or ${WRITE_TOKEN}.",
    )  # fmt: skip
    tls_cert: Path | None = _option("serve.tls_cert", help="A certificate with its chain, in PEM.")
    tls_key: Path | None = _option("serve.tls_key", help="Its key, in PEM, without a password.")
    insecure: bool = _option(
        "serve.insecure", "--insecure", default=False,
        help="Serve on an address that is not loopback without a token, or without TLS.",
    )  # fmt: skip
    allow_hosts: list[str] | None = _option(
        "serve.allow_hosts", "--allow-host", metavar="NAME",
        help="A name that clients may call the service by, such as a proxy's; may be repeated.",
    )  # fmt: skip

    def access(self, address: str, option: str) -> Access:
        """Who may do what at `address`, which that option says. Raises typer.BadParameter if it is
        none; PipelineError if it is open to all without being loopback; MissingPackage."""
        security, app = _packages()
        from ..arguments import parse_address

        try:
            host, _ = parse_address(address)
        except PipelineError as error:
            raise typer.BadParameter(str(error), param_hint=option) from error
        found: Access = security.Access(
            _token(self.token_file, TOKEN),
            _token(self.write_token_file, WRITE_TOKEN),
            tuple(self.allow_hosts or ()),
            self.tls_cert,
            self.tls_key,
            self.insecure,
        )
        if app.check_address(address, found):
            for risk in found.risks(host):
                _warn(risk)
        return found

    def refuse(self) -> None:
        """Raise typer.BadParameter if any was given, where nothing is served."""
        if self != ServeOptions():
            raise typer.BadParameter("the options of serving need it", param_hint="--serve")


def _packages() -> tuple[Any, Any]:
    try:
        from ..service import app, security
    except MissingPackage:
        raise
    except ImportError as error:
        raise MissingPackage(
            f"serving needs Starlette and uvicorn ({error}): {how_to_install('serve')}",
            name=error.name,
        ) from error
    return security, app


def _token(path: Path | None, variable: str) -> str | None:
    """A token from its file, else from the environment."""
    from ..service.security import check_token, read_token, readable_by_others

    if path is not None:
        if readable_by_others(path):
            _warn(f"{path}: other users of this machine can read the token: chmod 600 {path}")
        return read_token(path)
    token = os.environ.get(variable)
    if token is not None:
        check_token(token, f"${variable}: a token")
    return token


def _warn(text: str) -> None:
    print(f"lpma: {text}", file=sys.stderr)


@contextmanager
def serving(context: Context, address: str, access: Access) -> Iterator[Service]:
    """Serve `context` within. At the end nobody waits for an answer that cannot come."""
    from ..process import short_pauses
    from ..service.app import Service

    with short_pauses(), Service(context, address, access) as service:
        try:
            yield service
        finally:
            context.requests.close("the stream has ended: ask again when it runs")


def context_of(
    pipeline: Pipeline, title: str, alerts: Sequence[str] = (), update_topic: str | None = None
) -> Context:
    """What is served of a pipeline, with its rules of alerts. Raises typer.BadParameter."""
    from ..service.context import Context
    from ..service.sampling import parse_rule

    try:
        rules = [parse_rule(rule, pipeline.settings.track) for rule in alerts]
    except PipelineError as error:
        raise typer.BadParameter(str(error), param_hint="--alert") from error
    graph: Any = pipeline.graph
    return Context(
        pipeline.requests, graph, pipeline, title, alerts=rules, update_topic=update_topic
    )
