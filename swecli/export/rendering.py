"""From a session's facts to the text of an export, in any format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swecli.core.protocol.events import Event
from swecli.core.sessions.journal import masked_events
from swecli.core.sessions.portable import Portable, portable_document, references, results_of
from swecli.export.destination import ExportFormat
from swecli.export.transcript import heading_of, transcript_of


def rendered(
    events: Sequence[Event],
    wanted: ExportFormat,
    cover: Callable[[str], str],
    *,
    get: Callable[[str], bytes | None],
    report: Callable[[str], None],
    name: str = "",
) -> str:
    """The export of an open session. ``get`` returns its stored results, ``report`` receives missing content, ``name``
    is the user's name for it."""
    if wanted != "json":
        return readable(events, wanted, cover, name)
    head = heading_of(events)
    results = results_of(references(events), get, {}, report)
    session = Portable(
        head.session,
        head.title,
        head.cwd,
        head.model,
        head.created,
        head.updated,
        head.swecli,
        tuple(events),
        results,
        name=name,
    )
    return portable_document(session, cover)


def readable(events: Sequence[Event], wanted: ExportFormat, cover: Callable[[str], str], title: str = "") -> str:
    """The export as Markdown or HTML; ``title`` is the session's own name, if any."""
    transcript = transcript_of(masked_events(events, cover), cover(title))
    if wanted == "html":
        from swecli.export.page import page_of

        return page_of(transcript)
    from swecli.export.markdown import markdown_of

    return markdown_of(transcript)
