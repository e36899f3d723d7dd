"""Workers in threads of one process: for tests, and for the devices of one host.

Messages go by reference; the receiver copies what lies on another device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .messages import size_bytes
from .types import Messages, Part
from .worker import Worker


class LocalWorkers:
    """See `types.Workers`.

    workers: of all shards, in their order; or their parts.

    steps, bytes_sent: supersteps, and bytes from one worker to another, since the last `begin`
    """

    def __init__(self, workers: Sequence[Worker | Part]) -> None:
        self.workers = [Worker(one) if isinstance(one, Part) else one for one in workers]
        self.size = len(self.workers)
        self.steps = self.bytes_sent = 0
        self._inboxes: list[Messages] = []
        self._pool = ThreadPoolExecutor(self.size, thread_name_prefix="lpma-shard")

    def begin(self, program: str, params: dict[str, Any]) -> None:
        self.steps = self.bytes_sent = 0
        self._inboxes = [[None] * self.size for _ in self.workers]
        self.call("begin", program, params)

    def step(self, control: Any) -> list[Any]:
        inboxes = self._inboxes
        done = self._each(lambda i, worker: worker.step(control, inboxes[i]))
        outboxes = [outbox for outbox, _ in done]
        self._inboxes = [[outbox[i] for outbox in outboxes] for i in range(self.size)]
        self.steps += 1
        self.bytes_sent += sum(
            size_bytes(message)
            for sender, outbox in enumerate(outboxes)
            for receiver, message in enumerate(outbox)
            if sender != receiver
        )
        return [summary for _, summary in done]

    def results(self) -> list[Any]:
        return self.call("result")

    def call(self, method: str, *args: Any) -> list[Any]:
        return self._each(lambda _, worker: getattr(worker, method)(*args))

    def _each(self, of: Callable[[int, Worker], Any]) -> list[Any]:
        if self.size == 1:
            return [of(0, self.workers[0])]
        waiting = [self._pool.submit(of, i, worker) for i, worker in enumerate(self.workers)]
        for one in waiting:
            one.exception()  # all are at rest before the first error is raised
        return [one.result() for one in waiting]
