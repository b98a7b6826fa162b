"""The commands that the session runs, as the screen of jobs shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from swecli.core.protocol.commands import CancelItem, Interrupt
from swecli.core.workspace.jobs import JobInfo, JobsError
from swecli.tui.screens.ports import ShownCommand
from swecli.tui.transcript.blocks import ToolBlock

if TYPE_CHECKING:
    from swecli.core.engine.view import SessionPort
    from swecli.tui.stage import Stage
    from swecli.tui.state import Running
    from swecli.tui.transcript.view import Transcript


class CommandsAtWork:
    """Implements ``CommandsPort`` on the open session. What a command in the foreground wrote is known from the
    transcript, its end at least."""

    def __init__(self, stage: Stage, transcript: Transcript) -> None:
        self._stage = stage
        self._transcript = transcript

    def read(self) -> Sequence[ShownCommand]:
        port = self._stage.link.port
        waited = [self._waited(item, run) for item, run in self._stage.state.running.items() if run.is_command]
        return [*waited, *(_job(job) for job in (port.view.jobs if port is not None else ()))]

    async def output(self, name: str) -> str:
        block = self._block(name)
        if block is not None:
            return block.output
        try:
            return await self._port().job_output(name)
        except JobsError as error:
            raise ValueError(str(error)) from error

    async def stop(self, name: str) -> str:
        running = self._stage.state.running.get(name)
        if running is not None:
            # What the user started has no call that could be stopped alone.
            self._stage.link.send(Interrupt() if running.kind == "user" else CancelItem(name))
            return "It is being stopped; the transcript shows what it wrote"
        try:
            job = await self._port().stop_job(name)
        except JobsError as error:
            raise ValueError(str(error)) from error
        return f"{job.id} was stopped" if job.status == "killed" else f"{job.id} had ended already"

    def _port(self) -> SessionPort:
        port = self._stage.link.port
        if port is None:
            raise ValueError("The session is not open")
        return port

    def _block(self, item: str) -> ToolBlock | None:
        blocks = self._transcript.page.blocks
        place = blocks.place(item) if item in self._stage.state.running else None
        block = blocks[place] if place is not None else None
        return block if isinstance(block, ToolBlock) else None

    def _waited(self, item: str, running: Running) -> ShownCommand:
        block = self._block(item)
        size = len(block.output.encode("utf-8", "replace")) if block is not None else 0
        beyond = block is not None and block.output_cut
        about = "your own" if running.kind == "user" else "the turn waits for it"
        return ShownCommand(
            item,
            running.title or running.name,
            running.since,
            size=size,
            beyond=beyond,
            about=about,
            job=False,
            item=item,
        )


def _job(job: JobInfo) -> ShownCommand:
    about = f"pid {job.pid}" if job.status == "running" else job.note
    return ShownCommand(
        job.id,
        job.command,
        job.started,
        None if job.status == "running" else job.ended or job.started,
        job.exit_status,
        stopped=job.status == "killed",
        size=job.size,
        about=about,
        item=job.item,
    )
