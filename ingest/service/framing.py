"""How much a client may send that is no body: heads, trailers, chunks and what is between them.

Idea: the parser keeps a header, and calls Python for each chunk, whatever the guard thinks of the
request. So what has no body in it is bounded by itself, as a head is; chunks may be small while
they are few, and their framing may not outweigh the body.
"""

from __future__ import annotations

from http import HTTPStatus

MAX_HEAD_BYTES = 16 << 10  # of a head, of trailers, and of what is between two parts of a body
MAX_HEADERS = 100
MAX_CHUNKS = 1 << 14  # of a body, in parts as they come, and more if the mean of them is at least
MIN_CHUNK_BYTES = 64
MAX_FRAMING = 4  # times as many bytes as the body has, and
MAX_FRAMING_BYTES = 128 << 10  # beside them


class Refused(ValueError):
    """What is sent is not taken: the status of the answer, and why."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Framing:
    """The counts of one request, which raise Refused when they are too high."""

    def __init__(self) -> None:
        self.is_chunked = False
        self._headers = 0
        self._chunks = 0
        self._body_bytes = 0
        self._raw_bytes = 0  # of the body, with its framing
        self._quiet_bytes = 0  # without a part of the body
        self._moved = True  # by the share at hand: a request began, or some body came

    def add_header(self) -> None:
        self._headers += 1
        if self._headers > MAX_HEADERS:
            raise _long_head()

    def check_head(self, size: int) -> None:
        """The head is complete; what follows the last chunk has a count of its own."""
        if size > MAX_HEAD_BYTES:
            raise _long_head()
        self._headers = 0

    def add_body(self, size: int) -> None:
        """A part of the body came."""
        self._moved = True
        self._quiet_bytes = 0
        if not self.is_chunked:
            return
        self._chunks += 1
        self._body_bytes += size
        if self._chunks > MAX_CHUNKS and self._body_bytes < MIN_CHUNK_BYTES * self._chunks:
            raise _small_chunks()

    def add_bytes(self, size: int) -> None:
        """A share was parsed, behind which the request is still not whole."""
        moved, self._moved = self._moved, False
        if not moved:
            # The parser keeps a header until it is whole, however long it becomes.
            self._quiet_bytes += size
            if self._quiet_bytes > MAX_HEAD_BYTES:
                raise _long_head()
        if self.is_chunked:
            self._raw_bytes += size
            if self._raw_bytes > MAX_FRAMING * self._body_bytes + MAX_FRAMING_BYTES:
                raise _small_chunks()


def _long_head() -> Refused:
    return Refused(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        f"a head, or a trailer, has at most {MAX_HEADERS} headers and {MAX_HEAD_BYTES >> 10} KiB",
    )


def _small_chunks() -> Refused:
    return Refused(
        HTTPStatus.BAD_REQUEST,
        "the body comes in chunks of a few bytes, or with little in them: send larger ones",
    )
