"""Errors of the service as problem documents (RFC 9457): what happened, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse, Response

from lpma.errors import BatchError, BrokenStore, LpmaError, OutOfMemory

from ..errors import PipelineError, RecordError, SourceError, WordError

MEDIA_TYPE = "application/problem+json"
GONE = 499  # the status of a request without an answer: its client went

_WRONG = RecordError, WordError, BatchError  # what is sent
_NOT_NOW = OutOfMemory, PipelineError, SourceError, BrokenStore
_OF_RECORDS = {"malformed": 400, "oversized": 413}  # by the kind of a RecordError; others: 422


class Problem(HTTPException):
    """An error with a status; `detail` says what to do. `retry_after_s` becomes a header. type: a
    URI by which a program knows it, where the status does not say enough."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        retry_after_s: int | None = None,
        type: str = "about:blank",
    ) -> None:
        self.type = type
        sent = dict(headers or {})
        if retry_after_s is not None:
            sent["Retry-After"] = str(retry_after_s)
        super().__init__(status, detail, sent)


def as_problem(error: Exception) -> Problem | None:
    """A typed error of ours as a problem; None for any other, which is a bug."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        return Problem(error.status_code, error.detail, headers=error.headers)
    if isinstance(error, _WRONG):
        return Problem(_OF_RECORDS.get(getattr(error, "kind", ""), 422), _said(error))
    if isinstance(error, _NOT_NOW):
        return Problem(503, _said(error), retry_after_s=1)
    return Problem(500, _said(error)) if isinstance(error, LpmaError) else None


def problem_response(problem: HTTPException) -> Response:
    """The document."""
    document = {
        "type": getattr(problem, "type", "about:blank"),
        "title": HTTPStatus(problem.status_code).phrase,
        "status": problem.status_code,
        "detail": problem.detail,
    }
    return JSONResponse(document, problem.status_code, problem.headers, MEDIA_TYPE)


def on_error(request: HTTPConnection, error: Exception) -> Response:
    """Starlette's handler of exceptions."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=GONE)  # which nobody gets
    problem = as_problem(error)
    if problem is None:
        problem = Problem(500, "an error of the service itself: its log says more")
    return problem_response(problem)


def _said(error: Exception) -> str:
    """What is wrong; where it advises of Python, what the command line has for it, too."""
    advice = "make the graph with predecessors=True"
    return str(error).replace(advice, f"{advice}, or --predecessors on the command line")
