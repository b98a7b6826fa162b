"""One attempt at a task, in a process of its own: checkout, setup, agent, patch, check."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.command_line.worktree import trust_as
from swecli.core.git import GitFailedError
from swecli.core.llm.remedies import for_task
from swecli.core.protocol.commands import Interrupt
from swecli.core.sessions.results import encodable
from swecli.core.workspace.process import LaunchError, ProcessResult, run_process, scrubbed_environment
from swecli.exit_codes import ExitCode
from swecli.figures import duration
from swecli.fleet.checking import OUTPUT_HEAD, OUTPUT_TAIL, checked
from swecli.fleet.checkout import Checkout, MachineryError, apply_tests, make_checkout, patch_of, settled
from swecli.fleet.gate import Door, GatedClient
from swecli.fleet.link import Ask, Began, CheckRun, Ended, FromWorker, Order, Phase
from swecli.fleet.transcript import Follower, export_transcript, forget, ignore
from swecli.headless.outcome import Outcome
from swecli.headless.run import HeadlessRun, Request
from swecli.launch import LaunchOptions, StartError
from swecli.output import Writer
from swecli.stopping import Stop

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

GRACE = 15.0
"""Seconds for an interrupted agent to end in order."""
_PERMANENT = (ExitCode.AUTH, ExitCode.CONFIG, ExitCode.SANDBOX, ExitCode.UNTRUSTED, ExitCode.BAD_INPUT, ExitCode.USAGE)
"""Failures that the same run would meet again."""
_AGENTS = frozenset(
    (
        ExitCode.OK,
        ExitCode.TURN_LIMIT,
        ExitCode.BUDGET,
        ExitCode.CONTEXT_BLOCKED,
        ExitCode.APPROVAL_NEEDED,
        ExitCode.REFUSED,
        ExitCode.ANSWER_CUT,
        ExitCode.INTERRUPTED,
    )
)
"""Ends that are the agent's own. What it has changed until then is checked."""


class _Progress(Struct):
    """The figures of an attempt so far."""

    seconds: dict[str, float] = field(default_factory=dict)
    outside: float = 0.0
    """Processor seconds of swecli and git outside the agent's phase."""
    outcome: Outcome = field(default_factory=Outcome)
    late: bool = False
    """Whether the agent was ended after its time."""
    patch: bytes = b""
    check: CheckRun | None = None
    base: str = ""
    transcript: str = ""


class Attempt:
    """Runs one order. ``send`` tells the fleet, ``ask`` is the door to its permission for a request."""

    def __init__(self, order: Order, send: Callable[[FromWorker], None], ask: Callable[[Ask], Awaitable[str]]) -> None:
        self._order = order
        self._task = order.task
        self._send = send
        self._door = Door(lambda provider, size: ask(Ask(provider, size)), send)
        self._progress = _Progress()
        os.environ.update(order.task.env)  # for the agent's commands; the process has this one attempt
        self._environment = {**scrubbed_environment(os.environ), **order.task.env}

    async def run(self) -> Ended:
        """The end of the attempt. Its scratch folder is left with the transcript alone."""
        scratch = Path(self._order.scratch)
        try:
            status = await self._phases(scratch)
        except MachineryError as error:
            status = Ended("broken", error.kind, str(error), again=error.again)
        finally:
            await asyncio.to_thread(forget, scratch)
        if self._door.refusal and status.status != "passed":
            status = Ended("stopped", "budget", self._door.refusal)
        return self._reported(status)

    def _reported(self, ended: Ended) -> Ended:
        progress, outcome = self._progress, self._progress.outcome
        return replace(
            ended,
            patch=progress.patch,
            check=progress.check,
            steps=outcome.steps,
            tokens_in=outcome.usage.prompt,
            tokens_out=outcome.usage.completion,
            cost=None if outcome.cost is None else str(outcome.cost),
            seconds={name: round(value, 3) for name, value in progress.seconds.items()},
            session=outcome.session,
            model=outcome.model,
            answer=encodable(outcome.text[-4_000:]),
            base=progress.base,
            transcript=progress.transcript,
            processor=round(progress.outside, 3),
        )

    async def _phases(self, scratch: Path) -> Ended:
        task = self._task
        async with self._phase("clone"):
            checkout = await asyncio.to_thread(
                make_checkout, task, scratch, Path(self._order.mirrors), self._environment
            )
            self._progress.base = checkout.commit
        if task.setup:
            async with self._phase("setup"):
                await self._set_up(checkout)
        checkout = await asyncio.to_thread(settled, checkout, self._environment)
        async with self._phase("agent"):
            code = await self._agent(checkout, scratch)
        self._progress.patch = await asyncio.to_thread(patch_of, checkout, self._environment)
        broken = self._broken(code)
        if broken is not None:
            return broken
        return await self._verified(checkout, self._agents_end(code))

    @asynccontextmanager
    async def _phase(self, phase: Phase) -> AsyncIterator[None]:
        self._send(Began(phase))
        began, used = time.monotonic(), _processor()
        try:
            yield
        finally:
            self._progress.seconds[phase] = time.monotonic() - began
            if phase == "clone":
                self._progress.outside += _processor() - used

    async def _set_up(self, checkout: Checkout) -> None:
        """Run the setup, with the user's rights: it installs, and nothing of the model's is there yet."""
        task = self._task
        try:
            result = await run_process(
                task.setup,
                cwd=checkout.folder,
                environment=self._environment,
                timeout=task.timeout,
                head=OUTPUT_HEAD,
                tail=OUTPUT_TAIL,
            )
        except LaunchError as error:
            raise MachineryError("setup", f"the setup did not start: {error}", again=True) from error
        if result.ending != "exited":
            raise MachineryError("setup", f"the setup took longer than {duration(task.timeout)}", again=True)
        if result.exit_status:
            raise MachineryError(
                "setup", f"the setup ended with status {result.exit_status}: {_end(result)}", again=True
            )

    # --- the agent ------------------------------------------------------------------------------------------------

    def _options(self, checkout: Checkout) -> LaunchOptions:
        task, order = self._task, self._order
        return LaunchOptions(
            cwd=checkout.folder,
            headless=True,
            prompt=f"Task: {task.prompt}" if task.foreign and task.prompt.lstrip().startswith("/") else task.prompt,
            mentions=() if task.foreign else None,
            model=task.model,
            base_url=order.base_url,
            mode=None if order.yolo else task.mode,
            yolo=order.yolo,
            max_price=Decimal(task.max_price) if task.max_price is not None else None,
            max_tokens=task.max_tokens,
            max_steps=task.max_turns,
        )

    async def _agent(self, checkout: Checkout, scratch: Path) -> ExitCode:
        from swecli.app import open_session

        options = self._options(checkout)
        if not self._task.is_remote:
            await asyncio.to_thread(trust_as, Path(self._task.repo), checkout.folder)
        try:
            session = await open_session(options, gate=lambda client, price: GatedClient(client, price, self._door))
        except StartError as error:
            again = error.exit_code not in _PERMANENT
            raise MachineryError(error.exit_code.name.lower(), for_task(str(error)), again=again) from error
        code = await self._worked(session, options)
        name = session.view.session_id
        self._progress.transcript = await asyncio.to_thread(export_transcript, options, name, scratch)
        return code

    async def _worked(self, session: Session, options: LaunchOptions) -> ExitCode:
        request = Request(prompt=options.prompt, mentions=options.mentions)
        run = HeadlessRun(session, request, Follower(self._progress.outcome, self._send), ignore, Writer(), Stop())
        running = asyncio.ensure_future(run.run())
        try:
            done, _ = await asyncio.wait((running,), timeout=self._task.timeout)
            if not done:
                self._progress.late = True
                session.send(Interrupt())
                await asyncio.wait((running,), timeout=GRACE)
            if running.done():
                return running.result()
            raise MachineryError("stuck", f"the agent did not end {duration(GRACE)} after its time", again=False)
        except asyncio.CancelledError:
            session.send(Interrupt())
            await asyncio.wait((running,), timeout=GRACE / 3)
            raise
        finally:
            running.cancel()

    def _broken(self, code: ExitCode) -> Ended | None:
        """The end of an attempt whose provider or engine failed; None if the agent itself ended."""
        outcome = self._progress.outcome
        if code in _AGENTS:
            return None
        kind, reason = outcome.error or (code.name.lower(), "the agent ended without a reason")
        reason = encodable(for_task(reason))
        again = code not in _PERMANENT and kind not in ("quota", "bad_request")
        return Ended("broken", kind, reason, again=again)

    def _agents_end(self, code: ExitCode) -> tuple[str, str]:
        """Kind and reason of an agent's end before it was done; both empty if it was done."""
        if self._progress.late:
            return "timeout", f"the agent took longer than {duration(self._task.timeout)}"
        if code is ExitCode.OK:
            return "", ""
        error = self._progress.outcome.error
        kind = code.name.lower()
        return kind, encodable(for_task(error[1])) if error is not None else kind.replace("_", " ")

    # --- the check ------------------------------------------------------------------------------------------------

    async def _verified(self, checkout: Checkout, end: tuple[str, str]) -> Ended:
        task, (kind, reason) = self._task, end
        if not task.check:
            return Ended("failed" if kind else "unchecked", kind, reason)
        async with self._phase("check"):
            if task.test_patch:
                try:
                    await asyncio.to_thread(apply_tests, checkout, task.test_patch, self._environment)
                except GitFailedError as error:
                    return Ended("failed", "tests", f"the task's tests do not apply: {error.first_line}")
            result = await checked(task.check, task.timeout, self._options(checkout), self._environment)
        seconds = round(result.duration, 3)
        self._progress.check = CheckRun(result.exit_status, encodable(result.output), seconds)
        if result.exit_status == 0:
            return Ended("passed", "", "")
        if result.ending != "exited":
            return Ended("failed", "check timeout", f"the check took longer than {duration(task.timeout)}")
        if kind:
            return Ended("failed", kind, reason)
        empty = "" if self._progress.patch else "nothing was changed, and "
        what = "no change" if empty else "check"
        return Ended("failed", what, f"{empty}the check ended with status {result.exit_status}")


def _end(result: ProcessResult) -> str:
    """The last line of a command's output."""
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


def _processor() -> float:
    """Processor seconds of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
