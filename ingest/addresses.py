"""Addresses to serve on, as they are given on the command line."""

from __future__ import annotations

import re

from .errors import PipelineError

LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):)?(?P<port>[0-9]{1,5})")


def parse_address(address: str | int) -> tuple[str, int]:
    """(host, port) of "port" or "host:port"; loopback if no host is named. An IPv6 host stands
    in brackets. Raises PipelineError."""
    match = _ADDRESS.fullmatch(str(address))
    if not match or int(match["port"]) > 65535:
        raise PipelineError(f"{address!r}: give a port, or host:port, as 9464 or 0.0.0.0:9464")
    return (match["host"] or LOOPBACK).strip("[]"), int(match["port"])
