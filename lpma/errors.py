"""What can go wrong, by type. Every message says what to do about it.

Unless its docstring says otherwise, an error leaves a graph as it was.
"""

from __future__ import annotations


class LpmaError(Exception):
    """Base of every error this package raises on purpose."""


class BatchError(LpmaError, ValueError):
    """A batch or an argument is malformed. Raised before anything is written."""


class VertexError(BatchError):
    """An algorithm is to start from a vertex that the graph does not have. A read of such a vertex
    is empty, or 0."""


class TooManyNames(BatchError):
    """A batch names more vertices than a graph has ids for: start another graph."""


class InvariantError(LpmaError, AssertionError):
    """`Graph.check()` found invariant `number` of `lpma.store.lpma.LPMA` broken."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(f"invariant {number}: {message}")
        self.number = number


class FormatError(LpmaError, ValueError):
    """A file is not what it should be: wrong format, wrong checksum, cut short."""


class DeviceError(LpmaError, RuntimeError):
    """The device asked for cannot be used here."""


class OutOfMemory(LpmaError, MemoryError):
    """An allocation failed. The graph is as it was: the batch has not been applied. Only
    AnswersTooLarge is raised after its batch."""


class AnswersTooLarge(OutOfMemory):
    """There was no memory for the answers to a batch's queries. Its updates are applied all the
    same."""


class StoreTooLarge(OutOfMemory):
    """A batch or a file would need more segments than the device's code can number: more memory
    would not help. The graph is as it was."""


class SnapshotTooLarge(LpmaError, MemoryError):
    """A snapshot's `indptr` would take more bytes than allowed: see `Graph.snapshot`."""


class ConcurrentWrite(LpmaError, RuntimeError):
    """A call that cannot wait, and has changed nothing: a second writer while another thread
    applies a batch, or any call from within a call of the same graph on the same thread, such as
    from a signal handler or from the graph's clock."""


class BrokenStore(LpmaError, RuntimeError):
    """A batch was cut off between its first write and its end: the graph holds a part of it and
    refuses every later call. Load it again from a save, or resume the pipeline."""
