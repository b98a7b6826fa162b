"""`swecli lab`: stored sessions replayed with other context settings; makes no request and changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import to_builtins

from swecli.command_line.arguments import Parser, UsageError, count, folder_parser, working_directory
from swecli.command_line.session_store import opened
from swecli.command_line.standard_streams import complain, print_text
from swecli.exit_codes import ExitCode
from swecli.figures import plural
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.core.sessions.store import SessionStore
    from swecli.features.lab.recording import Recording
    from swecli.features.lab.replay import Replayed, Strategy

USUAL = "current,early,truncation"
NEWEST = 10
"""Sessions that ``tune`` examines."""


def lab(arguments: Sequence[str]) -> int:
    kinds: Mapping[str, Callable[[Sequence[str]], int]] = {"replay": replay_session, "tune": tune}
    if arguments[:1] and arguments[0] in kinds:
        return kinds[arguments[0]](arguments[1:])
    parser = Parser(prog="swecli lab", description="Replay stored sessions with other context settings.")
    parser.add_argument("what", choices=tuple(kinds), help="replay one session, or propose settings")
    parser.parse_args(arguments)
    return ExitCode.OK


def replay_session(arguments: Sequence[str]) -> int:
    from swecli.features.lab.strategies import PRESETS

    parser = folder_parser(
        "swecli lab replay",
        "Show what other settings would have done to a session: size, cost, compactions. Sends nothing to a model.",
        "a session of this folder",
    )
    parser.add_argument("session", nargs="?", default="", help="its id or the start of it; default: the newest")
    parser.add_argument(
        "--strategy",
        default=USUAL,
        metavar="A,B,...",
        help=f"what to compare: {', '.join(PRESETS)}, or settings as KEY=VALUE+KEY=VALUE (default: {USUAL})",
    )
    parser.add_argument("--json", action="store_true", help="for scripts, with every curve")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    strategies = _strategies(chosen.strategy.split(","), folder)
    with opened(folder) as store:
        recording = _recording(store, chosen.session or _newest(store, folder))
    from swecli.features.lab.replay import replay
    from swecli.features.lab.report import document
    from swecli.features.lab.strategies import LEAST_REQUESTS

    if recording.skipped:
        complain(f"warning: skipped {recording.skipped:,} unreadable events of the session")
    if recording.requests < LEAST_REQUESTS:
        count = plural(recording.requests, "request")
        complain(f"warning: with {count} this session is too short to learn from; that takes {LEAST_REQUESTS}")
    results = asyncio.run(replay(recording, strategies))
    names = ["recorded", *(strategy.name for strategy in strategies)]
    if chosen.json:
        return print_text(json.dumps(document(recording, names, results), indent=2) + "\n")
    return print_text("\n".join(_shown(recording, names, results)) + "\n")


def _shown(recording: Recording, names: Sequence[str], results: Sequence[Replayed]) -> list[str]:
    from swecli.block_text import block_lines
    from swecli.features.lab.report import curves, table
    from swecli.safe_text import safe_line

    effective = recording.first.effective
    head = (
        f"Session {recording.session}, {recording.info.ref}: {plural(recording.requests, 'request')}, effective window "
        f"{effective:,} tokens. Cost in uncached input tokens."
    )
    width = shutil.get_terminal_size((100, 24)).columns
    lines = [head, "", *block_lines(table(names, results)), "", *curves(names, results, effective, min(width, 120))]
    return [safe_line(line) for line in lines]


def tune(arguments: Sequence[str]) -> int:
    parser = folder_parser(
        "swecli lab tune",
        "Propose settings based on this folder's newest sessions. Writes nothing.",
        "sessions of this folder",
    )
    parser.add_argument("--sessions", type=count, default=NEWEST, metavar="N", help=f"how many (default: {NEWEST})")
    parser.add_argument("--json", action="store_true", help="for scripts")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    from swecli.features.lab.recording import NotReplayable, Recording
    from swecli.features.lab.replay import replay
    from swecli.features.lab.strategies import GRID, LEAST_REQUESTS, Tried, propose, worth_replaying

    strategies = _strategies(("current", *GRID), folder)
    recordings: list[Recording] = []
    with opened(folder) as store:
        for info in store.list(limit=chosen.sessions):
            try:
                recordings.append(Recording.of(info.id, store.load(info.id)))
            except NotReplayable:
                continue
    recordings = worth_replaying(recordings)
    if not recordings:
        least = f"that takes {LEAST_REQUESTS} requests"
        raise StartError(f"No session of this folder is long enough to learn from; {least}.", ExitCode.BAD_INPUT)
    runs = [asyncio.run(replay(recording, strategies))[1:] for recording in recordings]
    tried = [
        Tried.of(strategy.name, results) for strategy, results in zip(strategies, zip(*runs, strict=True), strict=True)
    ]
    proposal = propose(tried[0], tried[1:])
    if chosen.json:
        document = {"sessions": len(recordings), "tried": msgspec.to_builtins(tried)}
        return print_text(json.dumps({**document, "reason": proposal.reason, "toml": proposal.toml}, indent=2) + "\n")
    from swecli.block_text import block_lines
    from swecli.core.config.paths import user_file
    from swecli.features.lab.report import trials

    report = [
        f"{plural(len(recordings), 'session')} of this folder.",
        "",
        *block_lines(trials(tried)),
        "",
        proposal.reason,
    ]
    report += [f"To use it, add this to {user_file(os.environ)}:", "", proposal.toml] if proposal.best else []
    return print_text("\n".join(report) + "\n")


def _strategies(words: Sequence[str], folder: Path) -> list[Strategy]:
    from swecli.assembly.live_settings import compaction_options, context_limits
    from swecli.assembly.startup import startup_of
    from swecli.core.config.load import typed_value
    from swecli.core.config.settings import Settings
    from swecli.core.validation import InvalidError, validated
    from swecli.features.lab.replay import Strategy
    from swecli.features.lab.strategies import changes_of, with_changes

    def read(key: str, text: str) -> object:
        return typed_value(text, words=True, many=False) if not text.strip()[:1].isdigit() else json.loads(text)

    document = to_builtins(startup_of(LaunchOptions(cwd=folder), dict(os.environ)).loaded.settings)
    made: list[Strategy] = []
    for word in words:
        try:
            settings = validated(Settings, with_changes(document, changes_of(word.strip(), read)))
            made.append(Strategy(word.strip(), context_limits(settings), compaction_options(settings.context)))
        except InvalidError as error:
            wrong = error.problems[0]
            raise UsageError(f"--strategy {word}: {'.'.join(wrong.place)} {wrong.message}") from error
        except ValueError as error:
            raise UsageError(f"--strategy {word}: {error}") from error
    return made


def _newest(store: SessionStore, folder: Path) -> str:
    from swecli.assembly.continuing import no_sessions

    newest = next(iter(store.list(limit=1)), None)  # only read: may be open in another process
    if newest is None:
        raise no_sessions(folder)
    return newest.id


def _recording(store: SessionStore, name: str) -> Recording:
    from swecli.features.lab.recording import NotReplayable, Recording

    session = store.get(name).id
    try:
        return Recording.of(session, store.load(session))
    except NotReplayable as error:
        raise StartError(str(error), ExitCode.BAD_INPUT) from error
