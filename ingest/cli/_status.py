"""Why a command ended, for whoever started it: the exit statuses, of which Typer itself gives 2.

A supervisor starts a stream again that has failed. That helps where something is away, is full, or
was killed; it does not where the same command would come to the same end, until somebody changes
the command, the source or the directory. Commands that run for long tell the two apart.
"""

from __future__ import annotations

FAILED = 1
NEEDS_A_PERSON = 3


def status_of(error: BaseException) -> int:
    """NEEDS_A_PERSON of an error that the same command would end with again; FAILED where it may
    pass, or that is not known."""
    import sqlite3
    import ssl

    from lpma.dependencies import MissingPackage
    from lpma.errors import FormatError, SnapshotTooLarge

    from .. import errors
    from ._targets import TargetError

    if isinstance(error, errors.AwayError | errors.LockedError):
        return FAILED
    cause = error.__cause__
    refused = isinstance(cause, PermissionError | ssl.SSLError)  # they are an OSError, too
    if isinstance(cause, OSError | MemoryError | sqlite3.OperationalError) and not refused:
        return FAILED  # a disk that is full, or does not answer
    lasting = (
        TargetError, errors.SourceError, errors.CheckpointError, errors.PipelineError,
        errors.EpochsUsedUp, MissingPackage, FormatError, SnapshotTooLarge,
    )  # fmt: skip
    return NEEDS_A_PERSON if isinstance(error, lasting) else FAILED
