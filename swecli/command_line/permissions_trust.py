"""``swecli permissions trust`` and its opposites: what swecli may read of a workspace."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from swecli.command_line.arguments import Parser, UsageError, working_directory
from swecli.command_line.printing import complain, print_text
from swecli.exit_codes import ExitCode
from swecli.launch import StartError

if TYPE_CHECKING:
    from swecli.core.config.consent import PendingItem

_WORDS: dict[str, Literal["trusted", "declined", "unknown"]] = {
    "trust": "trusted",
    "decline": "declined",
    "forget": "unknown",
}


def set_trust(word: str, arguments: Sequence[str]) -> int:
    """Remember, refuse or forget trust in a folder; ``word`` is trust, decline or forget."""
    parser = Parser(
        prog=f"swecli permissions {word}",
        description="Trust decides whether settings and instructions of a folder count. It is kept for yourself, "
        "outside of the folder.",
    )
    parser.add_argument("-C", "--cwd", metavar="DIR", help="for this folder")
    if word == "trust":
        parser.add_argument("--below", action="store_true", help="and every folder inside, also those to come")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    from swecli.core.config.paths import user_paths
    from swecli.core.config.trust import trust_key, write_trust

    below = bool(word == "trust" and chosen.below)
    try:
        notice = write_trust(user_paths(os.environ).data, folder, _WORDS[word], below=below)
    except OSError as error:
        raise StartError(f"this can't be kept: {error}. Nothing was changed.") from error
    if notice:
        complain(f"warning: {notice}")
    what = {"trust": "is trusted", "decline": "is not trusted, and not asked about", "forget": "is asked about again"}
    return print_text(f"{trust_key(folder)}{' and everything below' if below else ''} {what[word]}.\n")


def accept(arguments: Sequence[str]) -> int:
    """Show what the project's settings wait for consent to, or consent to some of it."""
    parser = Parser(
        prog="swecli permissions accept",
        description="Settings of a project that name programs or addresses, or lift questions, count only after you "
        "accepted each. Without a key they are listed. A setting that changes is asked about again.",
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="for example approval.allow")
    parser.add_argument("-C", "--cwd", metavar="DIR", help="for this folder")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    pending = pending_items(folder)
    if not chosen.keys:
        _show(pending)
        return ExitCode.OK
    unknown = [key for key in chosen.keys if key not in {item.key for item in pending}]
    if unknown:
        raise UsageError(f"nothing waits for consent under {', '.join(unknown)}; `swecli permissions accept` lists it")
    wanted = [item for item in pending if item.key in chosen.keys]
    accept_pending(folder, wanted)
    for item in wanted:
        sys.stdout.write(f"accepted: {_safe(item.key)} = {_safe(item.value)}\n")
    return ExitCode.OK


def pending_items(folder: Path) -> tuple[PendingItem, ...]:
    """What waits for consent in a trusted folder.

    Raises:
        StartError: the folder is not trusted, or its settings are broken.
    """
    from swecli.assembly.startup import read_startup

    startup = read_startup(folder, dict(os.environ), {})
    if not startup.trust.trusts:
        raise StartError(
            f"{folder} is not trusted, so nothing of its settings is read. Trust it first: swecli permissions trust",
            ExitCode.UNTRUSTED,
        )
    return startup.loaded.pending


def accept_pending(folder: Path, items: Sequence[PendingItem]) -> None:
    """Remember consent to exactly these.

    Raises:
        StartError: it can't be kept.
    """
    from swecli.core.config.paths import user_paths
    from swecli.core.config.trust import accept_items

    try:
        accept_items(user_paths(os.environ).data, folder, [item.digest for item in items])
    except OSError as error:
        raise StartError(f"this can't be kept: {error}. Nothing was changed.") from error


def _show(pending: Sequence[PendingItem]) -> None:
    if not pending:
        sys.stdout.write("Nothing of this project's settings waits for your consent.\n")
    for item in pending:
        sys.stdout.write(f"{_safe(item.key)} = {_safe(item.value)}\n    {_safe(item.origin)}\n")


def _safe(text: str) -> str:
    from swecli.safe_text import safe_line

    return safe_line(text)
