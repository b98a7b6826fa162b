"""Learning the names of a repository's history in the background, so that no decision about a git command waits."""

from __future__ import annotations

from subprocess import Popen
from threading import Thread

from swecli.core.engine.companion import Companion, EndReason, Joined, Step
from swecli.core.engine.core import Core


class GitHistory(Companion):
    """Asks git at the user's first message, in a run without a user after the first step, and after steps with commands
    again for what is new. Only in a folder that the user trusts. The thread is not waited for at the end."""

    def __init__(self, core: Core) -> None:
        self._services = core.services
        self._thread: Thread | None = None
        self._running: list[Popen[bytes]] = []
        self._closed = False

    async def joined(self, message: Joined) -> None:
        if self._thread is None and not self._services.toolset.context.unattended:
            self._learn()

    async def after_step(self, step: Step) -> None:
        if self._thread is None or any(call.part.name == "run_command" for call in step.calls):
            self._learn()

    async def close(self, reason: EndReason) -> None:
        self._closed = True
        for process in tuple(self._running):
            process.kill()

    def _learn(self) -> None:
        policy, cwd = self._services.permissions.policy, str(self._services.workspace.cwd)
        if policy.trust not in ("trusted", "session") or (self._thread is not None and self._thread.is_alive()):
            return

        def learn() -> None:
            if not self._closed:
                policy.facts.learn_history(cwd, self._running)

        self._thread = Thread(target=learn, name="git history", daemon=True)
        self._thread.start()
