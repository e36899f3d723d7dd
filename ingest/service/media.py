"""The forms in which bodies come and answers leave, each called by its media type, and which of
them a request means."""

from __future__ import annotations

import re
from functools import lru_cache

from .problems import Problem

JSON, JSON_LINES = "application/json", "application/jsonl"
MSGPACK, ARROW = "application/msgpack", "application/vnd.apache.arrow.stream"
NPZ = "application/octet-stream"
COLUMNS = (JSON, MSGPACK, ARROW)  # forms of queries and their answers
UPDATES = (*COLUMNS, JSON_LINES)
SNAPSHOTS = (ARROW, NPZ)

_ALSO = {
    "application/vnd.msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
    "application/x-ndjson": JSON_LINES,
    "application/zip": NPZ,
}
_QUALITY = re.compile(r"q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)


@lru_cache(256)
def accepted(accept: str, forms: tuple[str, ...]) -> str:
    """The form of the answer that an Accept header asks for; the first where several are as good.
    Raises Problem 406."""
    best: dict[str, tuple[int, float]] = {}  # form: (how specific, quality)
    for item in (accept or "*/*").split(",")[:64]:
        name, _, parameters = item.partition(";")
        name = name.strip().lower()
        found = _QUALITY.search(parameters)
        quality = float(found[1]) if found else 1.0
        for form in forms:
            ranks = {"*/*": 0, "application/*": 1, form: 2}
            rank = ranks.get(_ALSO.get(name, name))
            if rank is not None:
                best[form] = max(best.get(form, (-1, 0.0)), (rank, quality))
    most = max((quality for _, quality in best.values()), default=0.0)
    if most == 0:
        raise Problem(406, f"Accept: answers come as {', '.join(forms)}")
    return next(form for form in forms if form in best and best[form][1] == most)


@lru_cache(256)
def form_of(content_type: str, forms: tuple[str, ...]) -> str:
    """The form of a body with this Content-Type. Raises Problem 415."""
    name = content_type.partition(";")[0].strip().lower()
    form = _ALSO.get(name, name)
    if form not in forms:
        said = f"{content_type[:80]!r} is not taken" if content_type else "there is none"
        raise Problem(415, f"Content-Type: {said}: send {', '.join(forms)}")
    return form
