"""The priority of a shard's process on Ray: that of any pipeline.

Idea: Ray starts its workers 15 steps of niceness below everything else, so that what they compute
never holds up Ray itself. Beside a busy broker, or another process of the same machine, that leaves
a shard 3 % of a core, and the stream waits: a pipeline of its own would share the core evenly. So a
shard takes the usual priority back.

That needs the right to (root, or CAP_SYS_NICE). Where it is not there, Ray must be started with
RAY_worker_niceness=0, as we start it ourselves. A variable that is set is somebody's choice, and
stays.
Requires: nothing. Elsewhere than on Linux, niceness is the process's, not the thread's.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress

from lpma.host import threads_of_process

from ..events import log_event

VARIABLE = "RAY_worker_niceness"  # which Ray's own processes read, and pass on to their workers
OF_RAY = {"worker_niceness": 0}  # the same, for `ray.init`


def take_usual_priority() -> None:
    """Let every thread of this process, and those that they begin, have the usual priority; an
    event tells if they may not."""
    if VARIABLE in os.environ:
        return
    try:
        for thread in threads_of_process():
            with suppress(ProcessLookupError):  # it has ended meanwhile
                if os.getpriority(os.PRIO_PROCESS, thread) > 0:
                    os.setpriority(os.PRIO_PROCESS, thread, 0)
    except PermissionError:
        log_event("low priority", logging.WARNING, niceness=os.getpriority(os.PRIO_PROCESS, 0),
                  remedy=f"start Ray with {VARIABLE}=0 in its environment")  # fmt: skip
