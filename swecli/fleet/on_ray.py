"""Attempts on a Ray cluster: a Ray task for each, and an actor for what all of them share.

Ray schedules, and runs a task again whose node died. The Ray task is a thin shell: it lets a worker process of its node
run the attempt, as on this machine. Nodes need swecli, git and the repositories: at an address, or at the same path.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
import threading
from decimal import Decimal
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from swecli.exit_codes import ExitCode
from swecli.fleet.allowance import Allowance, Caps, permission
from swecli.fleet.ledger import MIRRORS
from swecli.fleet.link import Ask, Ended, FromWorker, Order, Spent, encoded, from_worker
from swecli.fleet.local import Heard, LocalRunner, Permission, Returned
from swecli.launch import StartError

NEEDED = "--on ray needs Ray: pip install 'swecli[fleet]'"
COLLECT = 0.5
"""Seconds between two looks at what the nodes have told."""
RESCHEDULED = 4
"""How often Ray runs a task again whose node or worker died."""


def require_ray() -> Any:
    """The package; raises ``StartError`` if it is not installed."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise StartError(NEEDED, ExitCode.CONFIG) from error


class Post:
    """The actor: the allowance of the run, and the messages of the nodes until the driver collects them."""

    def __init__(self, caps: Caps, tokens: int, price: str) -> None:
        self._allowance = Allowance(caps, tokens, Decimal(price))
        self._messages: list[tuple[str, bytes]] = []
        self._halted = asyncio.Event()

    async def ask(self, provider: str, tokens: int) -> str:
        """Why a request may not be sent; empty to send it."""
        return await permission(self._allowance, Ask(provider, tokens))

    async def tell(self, attempt: str, message: bytes) -> None:
        """Keep a message of a worker for the driver."""
        spent = from_worker(message)
        if isinstance(spent, Spent):
            self._allowance.take(spent)
        self._messages.append((attempt, message))

    async def collect(self) -> list[tuple[str, bytes]]:
        """The messages since the last call, with the attempts that they are of."""
        messages, self._messages = self._messages, []
        return messages

    async def halt(self) -> None:
        self._halted.set()

    async def halted(self) -> None:
        """Return when the run is to end at once."""
        await self._halted.wait()


class RayRunner:
    """Runs attempts on the cluster at ``address``, or on one that it starts here. ``size`` is the number of its
    processors unless ``workers`` says otherwise. Takes some seconds: not for the event loop."""

    def __init__(
        self, address: str | None, workers: int | None, caps: Caps, tokens: int = 0, price: Decimal = Decimal(0)
    ) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would tell its makers about every cluster
        self._ray = ray = require_ray()
        try:
            ray.init(
                address=address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                include_dashboard=False if address is None else None,
            )
        except (RuntimeError, ConnectionError, ValueError, OSError) as error:
            reason = " ".join(str(error).split())[:300]
            where = f"The Ray cluster at {address}" if address else "Ray"
            raise StartError(f"{where} cannot be used: {reason}", ExitCode.CONFIG) from error
        self.size = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        # On the driver's own node: without the driver the run is over anyway, and any other node may die.
        on_driver = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node_id=ray.get_runtime_context().get_node_id(), soft=False
        )
        post = ray.remote(Post).options(num_cpus=0, max_concurrency=1_000, scheduling_strategy=on_driver)
        self._post = post.remote(caps, tokens, str(price))
        self._heard: dict[str, Heard] = {}
        self._collecting: asyncio.Task[None] | None = None
        self._halted = False

    async def attempt(self, order: Order, heard: Heard, permission: Permission) -> Returned:
        """Run one attempt somewhere. The actor permits the requests in the driver's place: ``permission`` is unused."""
        if self._halted:
            return Returned(Ended("stopped", "stopped", "the fleet was stopped"))
        ray, name = self._ray, Path(order.scratch).name
        if self._collecting is None:
            self._collecting = asyncio.ensure_future(self._collect())
        self._heard[name] = heard
        memory = {"memory": order.memory} if order.memory is not None else {}
        task = ray.remote(attempt_here).options(num_cpus=1, max_retries=RESCHEDULED, **memory)
        reference = task.remote(encoded(order), name, self._post)
        try:
            ended, transcript = await asyncio.wrap_future(reference.future())
            await self._take()
        except asyncio.CancelledError:
            ray.cancel(reference, force=True)
            raise
        except ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:300]
            return Returned(Ended("broken", "worker", f"Ray gave the task up: {reason}", again=True))
        finally:
            self._heard.pop(name, None)
        return Returned(msgspec.json.decode(ended, type=Ended), transcript)

    async def _collect(self) -> None:
        while True:
            await asyncio.sleep(COLLECT)
            with contextlib.suppress(self._ray.exceptions.RayError):
                await self._take()

    async def _take(self) -> None:
        for name, message in await self._post.collect.remote():
            heard = self._heard.get(name)
            if heard is not None:
                heard(from_worker(message))

    def halt(self) -> None:
        self._halted = True
        self._post.halt.remote()

    async def close(self) -> None:
        if self._collecting is not None:
            self._collecting.cancel()
        await asyncio.to_thread(self._ray.shutdown)


# --- on a node --------------------------------------------------------------------------------------------------


def attempt_here(order: bytes, name: str, post: Any) -> tuple[bytes, bytes | None]:
    """The Ray task: run an attempt on this node. Returns its end, and the session's file."""
    node = Path(tempfile.gettempdir()) / f"swecli-fleet-{os.getuid()}"
    own = msgspec.structs.replace(
        msgspec.json.decode(order, type=Order),
        scratch=str(node / f"{name}-{os.getpid()}"),
        mirrors=str(node / MIRRORS),
    )
    node.mkdir(mode=0o700, exist_ok=True)
    returned = asyncio.run_coroutine_threadsafe(_attempt(own, name, post), _loop()).result()
    return msgspec.json.encode(msgspec.structs.replace(returned.ended, transcript="")), returned.transcript


async def _attempt(order: Order, name: str, post: Any) -> Returned:
    runner = _runner()
    telling: set[asyncio.Future[Any]] = set()

    def heard(message: FromWorker) -> None:
        future = asyncio.ensure_future(_awaited(post.tell.remote(name, encoded(message))))
        telling.add(future)
        future.add_done_callback(telling.discard)

    async def permission(ask: Ask) -> str:
        return await post.ask.remote(ask.provider, ask.tokens)

    halted = asyncio.ensure_future(_awaited(post.halted.remote()))
    halted.add_done_callback(lambda done: None if done.cancelled() else runner.halt())
    try:
        return await runner.attempt(order, heard, permission)
    finally:
        halted.cancel()
        await asyncio.gather(*telling, return_exceptions=True)


async def _awaited(reference: Any) -> Any:
    return await reference


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of this Ray process, in a thread: workers outlive the Ray task that started them."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="swecli-fleet", daemon=True).start()
    return loop


@cache
def _runner() -> LocalRunner:
    return LocalRunner(1, Path(tempfile.gettempdir()) / f"swecli-fleet-{os.getuid()}" / "workers.log")
