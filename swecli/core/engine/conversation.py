"""The conversation of a session in figures and clauses, as ``/status`` and ``/context`` describe it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from swecli.core.context_management.ledger import Entry, Ledger, is_statement
from swecli.core.context_management.note_topics import changed_in_prompt
from swecli.core.context_management.projection import project
from swecli.core.context_management.thoughts import sent_thoughts
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.summaries import NO_EFFECT, why_not_by_provider
from swecli.core.llm.types import ModelClient, ModelInfo


class Conversation(Struct, frozen=True):
    """Messages that the model sees (``active``, including summaries), and all messages. ``oldest_age`` is the age in
    seconds of the oldest active message that is no summary; None if there is none."""

    active: int = 0
    total: int = 0
    summaries: int = 0
    oldest_age: float | None = None
    thoughts: int = 0
    """Thoughts of the current model that its next request brings back."""
    dead: int = 0
    """Thoughts left out because what preceded them has changed."""
    by_provider: tuple[str, ...] = ()
    """What the provider does with the conversation by itself, as clauses."""
    prompt: tuple[str, ...] = ()
    """Where the system prompt is from, and what has changed since it was made, as clauses."""


def conversation(services: Services, recorder: Recorder, client: ModelClient | None) -> Conversation:
    """The conversation as the next request would have it."""
    ledger, info = recorder.ledger, client.info if client is not None else None
    shown = [
        ledger.entries[entry.id] for entry in ledger.view if entry.id in ledger.entries and entry.kind != "dropped"
    ]
    summaries = sum(entry.kind == "summary" for entry in ledger.view)
    dropped = {entry.id for entry in ledger.view if entry.kind == "dropped"}
    messages, told = project(ledger), {entry.id for entry in shown if is_statement(entry)}
    active = sum(message.id not in dropped | told for message in messages)  # one stays as the environment
    hidden = _messages(ledger.entries.values()) - _messages(shown)
    since = min((entry.created for entry in shown), default=None)
    age = None if since is None else max(0.0, services.time.clock() - since)
    model = info.name if info is not None else ""
    alive, dead = len(sent_thoughts(messages, model)), len(ledger.dead_thoughts())
    total = active - summaries + len(hidden)
    clauses = tuple(_by_provider(services, recorder, client)), tuple(_about_prompt(services, recorder.ledger, info))
    return Conversation(active, total, summaries, age, alive, dead, *clauses)


def _about_prompt(services: Services, ledger: Ledger, info: ModelInfo | None) -> Iterator[str]:
    """Clauses on a system prompt whose files have changed since."""
    live = (ledger.entries.get(entry.id) for entry in ledger.view if entry.kind == "live")
    topics = [entry.source for entry in live if entry is not None and is_statement(entry)]
    names = [name for name in map(changed_in_prompt, dict.fromkeys(topics)) if name]
    if names and info is not None and services.toolset.context.earlier_prompt(info) is not None:
        yield "the system prompt is kept from an earlier run"
    if names:
        yield f"notes tell what has changed since the system prompt was made: {', '.join(names)}"


def _by_provider(services: Services, recorder: Recorder, client: ModelClient | None) -> Iterator[str]:
    """Clauses on the summaries and the clearing of the provider, as far as the user asked for them."""
    view, usage = recorder.ledger.view, recorder.state.last_usage
    if view and (written := view[0].provider) is not None:
        can = "undo it, but neither read nor edit it" if written.sealed else "read and undo it, not edit it"
        yield f"the provider wrote the summary at the beginning: you can {can}"
    if services.settings.now.compaction.provider_summary and client is not None:
        why = why_not_by_provider(client, services.settings.now.side_models)
        yield f"{NO_EFFECT}: {why}" if why else "the provider writes the summaries (context.provider_summary)"
    if (wish := services.toolset.context.limits.server_clearing) is not None:
        cleared = (usage.cleared or 0) if usage is not None else 0
        done = f"; in the newest request it left out about {cleared:,} tokens" if cleared else ""
        yield (
            f"the provider may leave out old results above {wish.trigger_tokens:,} tokens "
            f"(context.server_clearing){done}"
        )


def _messages(entries: Iterable[Entry]) -> set[tuple[str, bool]]:
    """Messages that contain the entries; each result is its own, and swecli's statements are none."""
    return {(entry.message, entry.kind == "result") for entry in entries if not is_statement(entry)}
