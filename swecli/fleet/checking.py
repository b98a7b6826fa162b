"""The check of an attempt, which runs what the model wrote, in the sandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from swecli.core.sandbox.launch import SandboxError, begun
from swecli.core.workspace.process import LaunchError, ProcessResult, run_process
from swecli.fleet.checkout import MachineryError
from swecli.launch import LaunchOptions

if TYPE_CHECKING:
    from swecli.core.sandbox.sandbox import Sandbox

OUTPUT_HEAD, OUTPUT_TAIL = 10_000, 30_000
"""Bytes of a command's output that are kept."""


async def checked(
    command: str, timeout: float, options: LaunchOptions, environment: Mapping[str, str]
) -> ProcessResult:
    """Run the command in the folder of the options, for at most ``timeout`` seconds; without the sandbox if they or the
    settings say so.

    Raises:
        MachineryError: it did not run.
    """
    from swecli.assembly.sandbox import build_sandbox
    from swecli.assembly.startup import startup_of

    if options.yolo:
        return await _ran(command, timeout, options, environment, None)
    startup = await asyncio.to_thread(startup_of, options, dict(os.environ))
    sandbox = build_sandbox(options, startup, environment)
    used = None if startup.loaded.settings.sandbox.mode == "off" else sandbox
    try:
        return await _ran(command, timeout, options, environment, used)
    except SandboxError as error:
        raise MachineryError("sandbox", f"the check did not run: {error}", again=False) from error
    finally:
        await asyncio.to_thread(sandbox.close)


async def _ran(
    command: str, timeout: float, options: LaunchOptions, environment: Mapping[str, str], sandbox: Sandbox | None
) -> ProcessResult:
    launch = None
    if sandbox is not None:
        launch = await begun(lambda: sandbox.begin(options.cwd, full=True))
    try:
        result = await run_process(
            command,
            cwd=options.cwd,
            environment={**environment, **(launch.environment if launch is not None else {})},
            timeout=timeout,
            head=OUTPUT_HEAD,
            tail=OUTPUT_TAIL,
            prefix=launch.prefix if launch is not None else (),
            inherited=launch.inherited if launch is not None else (),
        )
        if launch is not None and (failure := launch.failure(result.output, result.exit_status)):
            raise SandboxError(failure)
        return result
    except LaunchError as error:
        raise MachineryError("check", f"the check did not start: {error}", again=True) from error
    finally:
        if launch is not None:
            await asyncio.to_thread(launch.end)
