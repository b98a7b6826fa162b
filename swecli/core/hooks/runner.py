"""Runs the hooks of an event in parallel, each within its time limit, until the user skips them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.config.paths import PROJECT_VARIABLES
from swecli.core.hooks.answer import Answer, Ran, read_answer
from swecli.core.hooks.hook import Hook, HookEvent, changed_script
from swecli.core.hooks.translation import COMPACT
from swecli.core.protocol.hook_words import short_command
from swecli.core.workspace.command_output import CommandOutput, OutputPipe
from swecli.core.workspace.process import (
    CANCEL_GRACE,
    DRAIN,
    CommandSpec,
    LaunchError,
    RunningCommand,
    ended_unless_done,
)

if TYPE_CHECKING:
    from swecli.core.hooks.asking import AskModel

AT_ONCE = 8
"""Hooks that run at the same time."""
OUTPUT = 200_000
"""Bytes of each output of a hook that are kept."""
TAIL = 2_000
"""Characters of output kept for later inspection."""
_CAP = 1_000_000


class HookPlace(Struct, frozen=True):
    """Where hooks run. ``environment`` is scrubbed; ``cover`` masks secrets in stored output."""

    project: Path
    environment: Mapping[str, str]
    cover: Callable[[str], str] = lambda text: text
    variables: Mapping[str, str] = MappingProxyType({})
    """The user's own environment, of which requests may get the variables that a hook names."""


class HookRun(Struct, frozen=True):
    """One run of one hook. ``began`` is Unix seconds."""

    hook: Hook
    ran: Ran
    answer: Answer
    began: float = 0.0


class HookRecord(Struct):
    """State of a hook in this session. ``number``, from 1, is its name for the user."""

    number: int
    hook: Hook
    enabled: bool = True
    runs: int = 0
    failures: int = 0
    last: HookRun | None = None

    @property
    def tail(self) -> str:
        """The end of its last output."""
        ran = self.last.ran if self.last is not None else Ran("exited")
        return "\n".join(filter(None, (ran.stdout.strip(), ran.stderr.strip())))[-TAIL:]


class Hooks:
    """The hooks of a session. Output of each hook's newest run is kept."""

    def __init__(self, hooks: Sequence[Hook], place: HookPlace, clock: Callable[[], float] = time.time) -> None:
        self.records = [HookRecord(number, hook) for number, hook in enumerate(hooks, 1)]
        self.place = place
        self._clock = clock
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._beside: set[asyncio.Task[None]] = set()
        """Background hooks."""
        self.heard: Callable[[HookRun], None] = lambda run: None
        """Called with each run of a background hook."""
        self.ask: AskModel | None = None
        """Asks the small model of the session."""
        self._awaited: dict[asyncio.Event, Hook] = {}
        """Hooks that work waits for, running or about to, by the event that skips them."""

    def listening(self, event: HookEvent) -> list[HookRecord]:
        """Hooks to consider at an event: those that may run, and those whose missing decision a call must respect. An
        event without hooks costs nothing."""
        records = (record for record in self.records if record.hook.event == event and record.enabled)
        return [
            record for record in records if not record.hook.waiting or (record.hook.unconfirmed and record.hook.judges)
        ]

    def running(self, event: HookEvent) -> tuple[str, ...]:
        """Commands of an event that work waits for."""
        return tuple(dict.fromkeys(hook.command for hook in self._awaited.values() if hook.event == event))

    def skip(self) -> bool:
        """End the hooks that work waits for as if they had no output. False if there are none."""
        for event in self._awaited:
            event.set()
        return bool(self._awaited)

    async def run(
        self,
        event: HookEvent,
        shown: Sequence[tuple[tuple[str, ...], Mapping[str, Any]]],
        limit: float | None = None,
        holds: Callable[[str], bool] = lambda condition: False,
    ) -> tuple[HookRun, ...]:
        """Run the hooks of an event, once for each matching pair of subjects and payload whose condition ``holds``;
        equal commands run once per payload. ``limit`` caps each hook's seconds. Returns the runs in the order of the
        hooks, without background hooks."""
        wanted: list[tuple[HookRecord, bytes]] = []
        for subjects, payload in shown:
            records = [
                record
                for record in self.listening(event)
                if record.hook.matches(subjects) and (not record.hook.condition or holds(record.hook.condition))
            ]
            if records:
                data = json.dumps(payload, ensure_ascii=False, default=str, separators=COMPACT).encode(
                    "utf-8", "replace"
                )
                able = sorted(records, key=lambda record: bool(record.hook.waiting))
                first = {record.hook.action: record for record in reversed(able)}
                wanted += [(record, data) for record in records if first[record.hook.action] is record]
        for record, data in wanted:
            if record.hook.beside:
                task = asyncio.create_task(self._tell(record, data))
                self._beside.add(task)
                task.add_done_callback(self._beside.discard)
        waited = [pair for pair in wanted if not pair[0].hook.beside]
        return tuple(await asyncio.gather(*(self._one(record, data, limit) for record, data in waited)))

    async def _tell(self, record: HookRecord, data: bytes) -> None:
        self.heard(await self._one(record, data, None))

    async def close(self) -> None:
        """End the background hooks."""
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)

    async def _one(self, record: HookRecord, data: bytes, limit: float | None) -> HookRun:
        skipped = asyncio.Event()
        hook = record.hook
        seconds = hook.timeout if limit is None else min(limit, hook.timeout)
        if not hook.beside:  # Esc skips what somebody waits for, even before it has a slot
            self._awaited[skipped] = hook
        try:
            async with contextlib.nullcontext() if hook.beside else self._slots:
                began = self._clock()
                skips = skipped.is_set() and not hook.waiting  # one that may not run has no answer to leave out
                ran = Ran("skipped") if skips else await self._ran(hook, data, seconds, skipped)
        finally:
            self._awaited.pop(skipped, None)
        answer = read_answer(hook.event, ran, short_command(hook.command), record.number)
        run = HookRun(hook, replace(ran, stdout=self._kept(ran.stdout), stderr=self._kept(ran.stderr)), answer, began)
        record.runs += 1
        record.failures += bool(answer.problem) and ran.ending != "skipped"
        record.last = run
        return run

    async def _ran(self, hook: Hook, data: bytes, seconds: float, skipped: asyncio.Event) -> Ran:
        if hook.kind == "command" or hook.waiting:
            return await run_hook(hook, data, self.place, seconds, skipped)
        from swecli.core.hooks.asking import ask_model, post_event  # for few hooks

        if hook.kind == "prompt":
            return await ask_model(hook, data, self.ask, seconds, skipped)
        return await post_event(hook, data, self.place.variables, seconds, skipped)

    def _kept(self, text: str) -> str:
        return self.place.cover(text)[-TAIL:]


async def run_hook(hook: Hook, data: bytes, place: HookPlace, seconds: float, skipped: asyncio.Event) -> Ran:
    """Run one hook to its end, its time limit, or until ``skipped``. Processes that it leaves behind keep running;
    cancelling ends all of them."""
    if hook.waiting:
        return Ran("not allowed", problem=hook.waiting)
    if changed := await asyncio.to_thread(changed_script, hook, place.project):
        return Ran("changed", problem=changed)
    started = time.monotonic()
    errors = CommandOutput(cap=_CAP)
    reader, writer = os.pipe()
    names: dict[str, str] = dict.fromkeys(PROJECT_VARIABLES, str(place.project))
    command = hook.command
    if hook.plugin is not None:
        await asyncio.to_thread(Path(hook.plugin.data).mkdir, parents=True, exist_ok=True)
        command, names = hook.plugin.expanded(command), {**names, **hook.plugin.variables, **_LEAVES_NO_FILES}
    try:
        with tempfile.TemporaryFile() as stdin:  # which the hook reads at any speed, or ignores
            stdin.write(data)
            stdin.seek(0)
            spec = CommandSpec(
                command, place.project, {**place.environment, **names}, stdin=stdin.fileno(), errors=writer
            )
            running = RunningCommand(spec)
    except (LaunchError, OSError) as error:
        os.close(reader)
        return Ran("not started", problem=" ".join(str(error).split()))
    finally:
        os.close(writer)
    pipe = OutputPipe(reader, errors, None)
    try:
        async with ended_unless_done(running):
            ended = await running.wait(seconds, skipped)
            if not ended:
                await running.end(CANCEL_GRACE)
            await running.drained()
            await pipe.drained(DRAIN)
            ran = _read(running, errors)
            if ended and running.is_held:  # by a child that goes on, as a sound that is played does
                running.detach()
            else:
                running.close()
    finally:
        pipe.close()
        errors.close()
    running.output.close()
    duration = time.monotonic() - started
    if ended:
        return replace(ran, duration=duration)
    return replace(ran, ending="skipped" if skipped.is_set() else "timeout", exit_status=None, duration=duration)


_LEAVES_NO_FILES: dict[str, str] = {"PYTHONDONTWRITEBYTECODE": "1"}
"""A plugin's folder stays as the user allowed it."""


def _read(running: RunningCommand, errors: CommandOutput) -> Ran:
    stdout, cut = running.output.text(OUTPUT, 1_000)
    stderr, _ = errors.text(OUTPUT // 10, OUTPUT // 10)
    return Ran("exited", running.exit_status, stdout, stderr, cut=bool(cut))
