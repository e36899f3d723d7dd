"""How other processes of the same host speak to a cluster that runs: a Unix socket beside its
checkpoints, with JSON lines; and the locks that let one cluster at a time have the directory.

    DIR/cluster.lock    flocked by the one driver that has shards
    DIR/control.lock    flocked by the one cluster that listens there
    DIR/control.sock    mode 0600: only the user who runs the cluster, and root, can speak to it

    request := {"do": NAME, …} \\n                  NAME of an action, … its arguments
    reply   := {"ok": true, "result": …} \\n
             | {"ok": false, "error": TYPE, "message": TEXT} \\n

A connection carries one request. What it may cost is bounded:

    what a client may do                              what happens
    connect when `MAX_CONNECTIONS` are open           told that there are too many, and closed
    say nothing for `PATIENCE_S`, or half a line      closed
    say a line of more than `MAX_REQUEST_BYTES`       told, and closed
    read its reply slowly, or not at all              closed after `PATIENCE_S`
    ask for what is no action, or with bad arguments  told

Not over the network: whoever may ask may also have files written, and a token on an open connection
is anybody's. From another host, ssh and kubectl exec bring the user, the secrecy and the command.

Locks are never removed, and hold who locked them last, as a JSON object. A driver needs one since
shards on Ray outlive their driver and are found again by the next one: a second driver would find
those of a first that still runs, and end them with itself.

Invariants:
1. While a process holds a lock, no other does. The kernel lets go of it when that process ends,
   however it ends. So a socket found there under the lock is one that a killed process left, and is
   replaced.
2. Nobody else can connect at any time: the mode is set before the socket listens.

Trick: a socket's path has at most 107 bytes, a directory's may have more. So it is bound and
reached as /proc/self/fd/N/control.sock, N being a descriptor of the directory. Requires Linux, and
a directory in which locks work: drivers on two hosts keep each other out only where both have the
same one.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lpma.errors import LpmaError
from lpma.file.atomic import make_directory
from lpma.host import needs_linux, path_of_open

from ..arguments import of_socket, seconds_of
from ..errors import CheckpointError, IngestError, LockedError
from ..events import LOGGER
from ..state.directory import take_lock
from ..types import Closing

SOCKET = "control.sock"
MAX_CONNECTIONS = 16
MAX_REQUEST_BYTES = 64 << 10
MAX_REPLY_BYTES = 16 << 20
PATIENCE_S = 10.0

Action = Callable[..., Any]


class ControlError(IngestError):
    """No cluster can be spoken to, or it says that it cannot do what was asked.

    kind: the type of the error there, by its name; "" if none was told."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class ControlServer(Closing):
    """Listens in `directory`, made if there is none, from `start` on until `close`.

    actions: by name, what a request calls, with its arguments by keyword. They return plain values,
    and are called from several threads at once. What they raise is told to the client; what is a
    bug is logged as well.

    Raises LockedError if another cluster runs there, ControlError if the socket cannot be made."""

    def __init__(self, directory: str | os.PathLike[str], actions: Mapping[str, Action]) -> None:
        check_system()
        self._path = Path(directory)
        self._actions = dict(actions)
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._closed = False
        self._thread: threading.Thread | None = None
        try:
            self._lock = DirectoryLock(self._path, OF_CONTROL)
        except LockedError:
            raise
        except CheckpointError as error:
            raise ControlError(str(error)) from error
        try:
            self._listener = self._listening()
        except OSError as error:
            self._lock.close()
            raise ControlError(f"{self._path / SOCKET}: cannot be made: {error}") from error

    def _listening(self) -> socket.socket:
        """The socket, in the place of one that was left (invariant 1)."""
        left = self._path / SOCKET
        if left.exists() and not stat.S_ISSOCK(left.stat().st_mode):
            raise OSError("something else has its name: move it away")
        left.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _short(self._path) as path:
                listener.bind(path)
            os.chmod(left, 0o600)  # invariant 2
            listener.listen(MAX_CONNECTIONS)
        except BaseException:
            listener.close()
            raise
        return listener

    def start(self) -> None:
        self._thread = threading.Thread(target=self._accept, name="lpma-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. What an action still does goes on to its end, and is told."""
        if self._closed:
            return
        self._closed = True
        (self._path / SOCKET).unlink(missing_ok=True)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`
        self._listener.close()
        if self._thread is not None:
            self._thread.join()
        self._lock.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed, or no descriptor is left
                if not self._closed:
                    threading.Event().wait(0.1)
                continue
            client.settimeout(PATIENCE_S)
            if not self._places.acquire(blocking=False):
                _tell(client, _refusal(f"{MAX_CONNECTIONS} connections are open: try again"))
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError), client.makefile("rb") as lines:  # it may say nothing
                line = lines.readline(MAX_REQUEST_BYTES)
                if line.endswith(b"\n"):
                    _tell(client, self._answer(line))
                elif len(line) == MAX_REQUEST_BYTES:
                    _tell(client, _refusal(f"a request has at most {MAX_REQUEST_BYTES:,} bytes"))
        finally:
            self._places.release()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            name = request.pop("do")
            action = self._actions[name]
        except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
            known = ", ".join(self._actions)
            return _refusal('expected {"do": NAME, …}, NAME one of ' + known)
        try:
            return {"ok": True, "result": action(**request)}
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            if not isinstance(error, LpmaError | OSError | LookupError | ValueError | MemoryError):
                LOGGER.exception("control: %s failed", name)
            return _refusal(str(error) or type(error).__name__, type(error).__name__)


def check_system() -> None:
    """Raises ControlError where no cluster can be spoken to."""
    why = needs_linux("lpma cluster", "its control socket is reached by way of /proc/self/fd")
    if why is not None:
        raise ControlError(why)


@contextmanager
def _short(directory: Path) -> Iterator[str]:
    """A path of the socket in `directory` that is short enough (see the trick above)."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{path_of_open(descriptor)}/{SOCKET}"
    finally:
        os.close(descriptor)


def _refusal(message: str, kind: str = "") -> dict[str, Any]:
    return {"ok": False, "error": kind, "message": message}


def _line(reply: dict[str, Any]) -> bytes:
    line = json.dumps(reply, default=_plain).encode() + b"\n"
    if len(line) > MAX_REPLY_BYTES:
        line = _line(_refusal(f"the reply has {len(line):,} bytes: write it to a file instead"))
    return line


def _plain(value: Any) -> Any:
    """A plain value for what json does not support: NumPy's numbers and arrays, paths."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _tell(client: socket.socket, reply: dict[str, Any]) -> None:
    with suppress(OSError):  # it hung up
        client.sendall(_line(reply))


# The other side ------------------------------------------------------------------------------


def ask(
    directory: str | os.PathLike[str], do: str, /, *, wait_s: float = 60.0, **arguments: Any
) -> Any:
    """What the cluster that runs with this checkpoint directory, on this host, answers. Raises
    ControlError if none does, none within `wait_s`, or if it refuses."""
    check_system()
    wait_s = seconds_of(wait_s, "wait_s", ControlError)
    line = _line({"do": do, **arguments})
    if len(line) > MAX_REQUEST_BYTES:
        raise ControlError(f"{do}: a request has at most {MAX_REQUEST_BYTES:,} bytes")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(of_socket(wait_s))
        try:
            with _short(Path(directory)) as path:
                connection.connect(path)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            raise ControlError(
                f"{directory}: no cluster runs with this directory on this host: if one does on "
                "another, ask there, through ssh or kubectl exec; `lpma cluster run` starts one"
            ) from None
        except OSError as error:
            raise ControlError(f"{directory}: the cluster cannot be reached: {error}") from error
        try:
            with suppress(BrokenPipeError):  # why it hung up is there to be read
                connection.sendall(line)
            with connection.makefile("rb") as lines:
                reply = lines.readline(MAX_REPLY_BYTES + 1)
        except TimeoutError:
            raise ControlError(
                f"{directory}: {do}: no answer within {wait_s:g} s: look at `lpma cluster "
                "status`, or give it more time"
            ) from None
        except OSError as error:
            raise ControlError(f"{directory}: {do}: the cluster hung up: {error}") from error
    if not reply.endswith(b"\n"):
        raise ControlError(f"{directory}: {do}: the cluster ended before it answered")
    found = json.loads(reply)
    if not found["ok"]:
        raise ControlError(found["message"], found["error"])
    return found["result"]


OF_DRIVER, OF_CONTROL = "cluster.lock", "control.lock"


class DirectoryLock(Closing):
    """The lock `file` of a directory, which is made if there is none, held until `close`. Raises
    LockedError, which says who holds it as far as known; CheckpointError if it cannot be taken."""

    def __init__(self, directory: str | os.PathLike[str], file: str) -> None:
        place, path = Path(directory), Path(directory) / file
        try:
            make_directory(place)
        except OSError as error:
            raise CheckpointError(f"{place}: cannot be made: {error}") from error
        who = f"another cluster runs here{_held_by(path)}"
        self._lock: int | None = take_lock(place, file, 0o600, who)
        with suppress(OSError):  # on a full disk whoever is refused is told less
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, json.dumps(_this_process()).encode(), 0)

    def close(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def _this_process() -> dict[str, str | int]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}


def _held_by(path: Path) -> str:
    """Who has a lock, or had it last."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(path.read_bytes())
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found["since"]))
        this = _this_process()
        is_this = (found["pid"], found["host"]) == (this["pid"], this["host"])
        whose = "this process" if is_this else f"process {found['pid']}"
        return f" ({whose} on {found['host']}, since {since})"
    return ""
