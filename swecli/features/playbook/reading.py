"""What a session's playbook reads: its files, and the events of the session that it may learn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.core.engine.recorder import Recorder
from swecli.core.llm.foreign_calls import stored_arguments
from swecli.core.protocol.messages import TextPart

if TYPE_CHECKING:
    from swecli.core.playbook.bullet import Bullet
    from swecli.core.playbook.evidence import Evidence, EvidenceWatch
    from swecli.core.playbook.playbook import Playbook
    from swecli.core.playbook.reflection import Happening
    from swecli.core.playbook.store import Playbooks
    from swecli.core.playbook.trials import Trials


class Loaded(Struct):
    """The session's copy of the playbook. ``stale`` maps ids of outdated bullets to reasons."""

    project: Playbook
    own: Playbook
    stale: dict[str, str]
    watch: EvidenceWatch
    trials: Trials
    usable: list[Bullet]
    """Bullets that apply: live and not stale."""


def load(open_books: Callable[[], Playbooks]) -> tuple[Playbooks, Loaded]:
    """Read the files, rate the bullets by age and outcome, and find outdated ones. Reads files and runs nothing."""
    from swecli.core.playbook.evidence import EvidenceWatch
    from swecli.core.playbook.playbook import settle
    from swecli.core.playbook.store import stale
    from swecli.core.playbook.trials import Trials

    books = open_books()
    project, own = books.project.read(), books.own.read()
    for playbook in (project, own):
        settle(playbook, books.clock())
    bullets = (*project.bullets(), *own.bullets())
    gone = {bullet.id: why for bullet in bullets if (why := stale(bullet, books.root))}
    bullets = usable_bullets(project, own, gone)
    return books, Loaded(project, own, gone, EvidenceWatch(str(books.root)), Trials(), bullets)


def usable_bullets(project: Playbook, own: Playbook, stale: Mapping[str, str]) -> list[Bullet]:
    return [one for one in (*project.live(), *own.live()) if one.id not in stale]


def read_again(books: Playbooks, loaded: Loaded) -> tuple[Playbook, Playbook, dict[str, str]]:
    """The current playbooks and the reasons of outdated bullets; reads the files only if one of them changed."""
    from swecli.core.playbook.store import stale

    if not (books.project.has_news() or books.own.has_news()):
        return loaded.project, loaded.own, loaded.stale
    project, own = books.project.read(), books.own.read()
    bullets = (*project.bullets(), *own.bullets())
    return project, own, {bullet.id: why for bullet in bullets if (why := stale(bullet, books.root))}


def drafts_of(evidence: Sequence[Evidence], session: str, root: Path) -> list[Bullet]:
    from swecli.core.git import git_facts, head_commit
    from swecli.core.playbook.learning import drafts
    from swecli.core.playbook.project_commands import ProjectCommands
    from swecli.core.playbook.store import expired

    git = git_facts(root)
    commit = head_commit(git)[:12] if git is not None else ""
    named = ProjectCommands(root).name
    return drafts(evidence, session, commit, str(root), lambda expiry: not expired(expiry, root), named)


def happenings_of(recorder: Recorder, skipped: int) -> list[Happening]:
    """Calls and messages of the session after the first ``skipped`` items, without tool output."""
    from swecli.core.playbook.commands import shown, signature
    from swecli.core.playbook.reflection import Happening
    from swecli.core.playbook.support import Cited

    found: list[Happening] = []
    for name, record in islice(recorder.ledger.items.items(), skipped, None):
        if record.kind == "user":
            text = " ".join("".join(part.text for part in record.parts if isinstance(part, TextPart)).split())
            found.append(Happening(name, f"the user: {text[:300]}", Cited(said=(text[:300],))))
        elif record.kind == "tool" and record.call is not None:
            arguments = stored_arguments(record.call.name, record.call.arguments)
            target = shown(str(arguments.get("command") or arguments.get("path") or arguments.get("pattern") or ""))
            output = "".join(getattr(part, "text", "") for part in record.parts) if record.status == "error" else ""
            why = signature(output, record.exit_status)
            commands = (target,) if record.name == "run_command" and target else ()
            facts = Cited(worked=commands) if record.status == "ok" else Cited(commands, errors=(why,) if why else ())
            told = f"{record.name} `{target[:160]}` -> {record.status}{f' ({why})' if why else ''}"
            found.append(Happening(name, told, facts))
    return found
