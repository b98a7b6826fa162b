"""Views of one session that share the entries which they have in common."""

from __future__ import annotations

from dataclasses import replace

from swecli.core.protocol.events import Body, CompactionCompleted, Unknown, ViewEntry


class SharedViews:
    """Takes the bodies of a session in their order. Each compaction tells its whole view, so that a long session that
    is read back would hold most entries a hundred times."""

    def __init__(self) -> None:
        self._known: dict[str, ViewEntry] = {}

    def shared(self, body: Body | Unknown) -> Body | Unknown:
        """The body, equal to what it was."""
        if not isinstance(body, CompactionCompleted):
            return body
        return replace(body, view=tuple([self._same(entry) for entry in body.view]))

    def _same(self, entry: ViewEntry) -> ViewEntry:
        known = self._known.get(entry.id)
        if (
            known is not None  # field by field: there are many, and this is the quickest
            and known.kind == entry.kind
            and known.text == entry.text
            and known.sources == entry.sources
            and known.rule == entry.rule
        ):
            return known
        self._known[entry.id] = entry
        return entry
