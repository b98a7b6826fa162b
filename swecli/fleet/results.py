"""What becomes of a finished task: its patch in a checkout, its session continued."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

from swecli.command_line.session_files import cover_of
from swecli.command_line.session_store import opened
from swecli.command_line.standard_streams import complain, is_terminal, print_text
from swecli.core.git import GitFailedError, git_facts, read_git
from swecli.core.workspace.process import scrubbed_environment
from swecli.exit_codes import ExitCode
from swecli.fleet.checkout import SECONDS, Checkout, MachineryError, make_checkout, settled
from swecli.fleet.ledger import MIRRORS, Ledger, file_name, read_ledger
from swecli.launch import StartError
from swecli.safe_text import sanitise

OPENED = "opened"
"""Folder of the copies in which tasks are continued."""


def apply(folder: Path, name: str, checkout: Path, yes: bool) -> int:
    """Show a task's patch, and apply it to a checkout once the user agrees. Returns the exit status.

    Raises:
        StartError: there is no patch, or it does not apply; nothing is changed.
    """
    ledger = read_ledger(folder)
    try:
        _, result = ledger.task(name)
        patch = _patch_of(ledger, name, result)
    finally:
        ledger.close()
    git = git_facts(checkout)
    if git is None:
        raise StartError(f"{checkout} is not in a git repository", ExitCode.BAD_INPUT)
    environment = scrubbed_environment(os.environ)
    try:
        read_git("git", git.root, ("apply", "--check", "-"), environment, SECONDS, given=patch)
    except GitFailedError as error:
        raise StartError(
            f"The patch of {name} does not apply to {git.root}; nothing was changed ({error.first_line}).",
            ExitCode.BAD_INPUT,
        ) from error
    assert result is not None
    print_text(sanitise(patch.decode("utf-8", "replace")))
    why = f" ({result['reason']})" if result["reason"] else ""
    complain(f"swecli: {name} {result['status']}{why}")
    if not yes:
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            complain("swecli: nothing was applied: without a terminal this needs --yes")
            return ExitCode.APPROVAL_NEEDED
        sys.stderr.write(f"Apply it to {git.root}? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            complain("swecli: nothing was applied")
            return ExitCode.OK
    try:
        read_git("git", git.root, ("apply", "--whitespace=nowarn", "-"), environment, SECONDS, given=patch)
    except GitFailedError as error:
        raise StartError(f"git could not apply the patch: {error.first_line}") from error
    complain(f"swecli: applied to {git.root}; nothing was committed")
    return ExitCode.OK


def _patch_of(ledger: Ledger, name: str, result: dict[str, Any] | None) -> bytes:
    if result is None:
        raise StartError(f"The task {name} has not ended yet.", ExitCode.BAD_INPUT)
    try:
        patch = ledger.patch(result)
    except OSError as error:
        raise StartError(f"The patch of {name} cannot be read: {error.strerror}", ExitCode.BAD_INPUT) from error
    if not patch:
        raise StartError(f"The task {name} changed nothing.", ExitCode.BAD_INPUT)
    return patch


def reopened(folder: Path, name: str) -> tuple[Path, str]:
    """A copy of the task's repository with its changes, and its session in that folder. Both are kept: a second call
    gives the same ones. The setup does not run.

    Raises:
        StartError: the task has no session, or the copy can't be made.
    """
    ledger = read_ledger(folder)
    try:
        task, result = ledger.task(name)
        if result is None or not result["transcript"]:
            raise StartError(f"The task {name} has no session to open.", ExitCode.BAD_INPUT)
        known = ledger.fact(f"opened {result['session']}").partition("\n")
        if known[2] and Path(known[0]).is_dir():
            return Path(known[0]), known[2]
        scratch = folder / OPENED / f"{file_name(name)}-{result['session']}"
        shutil.rmtree(scratch, ignore_errors=True)
        environment = scrubbed_environment(os.environ)
        try:
            checkout = make_checkout(task, scratch, folder / MIRRORS, environment)
            checkout = settled(checkout, environment)
            _patched(checkout, ledger.patch(result), environment)
        except (MachineryError, GitFailedError) as error:
            raise StartError(f"The task {name} cannot be opened: {error}", ExitCode.BAD_INPUT) from error
        session = _imported(folder / result["transcript"], checkout.folder)
        ledger.state(f"opened {result['session']}", f"{checkout.folder}\n{session}")
        return checkout.folder, session
    except OSError as error:
        raise StartError(f"The task {name} cannot be opened: {error}", ExitCode.BAD_INPUT) from error
    finally:
        ledger.close()


def _patched(checkout: Checkout, patch: bytes, environment: dict[str, str]) -> None:
    if patch:
        options = ("apply", "--whitespace=nowarn", "-")
        read_git("git", checkout.folder, options, environment, SECONDS, given=patch)


def _imported(transcript: Path, folder: Path) -> str:
    from swecli.core.sessions.portable import PortableError, read_portable, take_in
    from swecli.core.sessions.store import SessionError

    try:
        session = read_portable(transcript.read_text(encoding="utf-8"))
        with opened(folder, changes=True, make=True) as store:
            return take_in(store, session, str(folder), cover_of(folder), "a fleet's task")
    except (PortableError, SessionError, sqlite3.Error, UnicodeDecodeError) as error:
        raise StartError(f"The session in {transcript} cannot be opened: {error}", ExitCode.BAD_INPUT) from error
