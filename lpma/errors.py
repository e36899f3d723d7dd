"""What can go wrong, by type. Every message says what to do about it."""

from __future__ import annotations


class LpmaError(Exception):
    """Base of every error this package raises on purpose."""


class BatchError(LpmaError, ValueError):
    """A batch or an argument is malformed. Raised before anything is written."""


class InvariantError(LpmaError, AssertionError):
    """`Graph.check()` found invariant `number` of `lpma.store.LPMA` broken."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(f"invariant {number}: {message}")
        self.number = number


class FormatError(LpmaError, ValueError):
    """A file is not what it should be: wrong format, wrong checksum, cut short."""


class DeviceError(LpmaError, RuntimeError):
    """The device asked for cannot be used here."""


class OutOfMemory(LpmaError, MemoryError):
    """An allocation failed. The store is unharmed, and the batch unapplied; but see
    AnswersTooLarge."""


class AnswersTooLarge(OutOfMemory):
    """The answers of a batch's queries found no memory. Its updates are applied all the same."""


class StoreTooLarge(OutOfMemory):
    """The batch or the file would need more segments than the device's code can number: no more
    memory helps. The store is unharmed, and the batch unapplied."""


class SnapshotTooLarge(LpmaError, MemoryError):
    """A snapshot's `indptr` would pass its memory bound."""


class ConcurrentWrite(LpmaError, RuntimeError):
    """A second writer came while a batch was being applied."""


class BrokenStore(LpmaError, RuntimeError):
    """A batch was cut off between its first write and its end: the graph holds a part of it, and
    answers nothing any more. Load it again from a save, or resume the pipeline."""
