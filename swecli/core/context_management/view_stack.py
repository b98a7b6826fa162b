"""Views of the ledger for undo and redo, stored as differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from swecli.core.protocol.context_events import ViewEntry

View = tuple[ViewEntry, ...]

_Piece = slice | View
"""A stretch of the later view, or entries missing from it."""


class ViewStack:
    """Views by the items of the compactions that replaced them, the newest on top. Long sessions compact a hundred
    times, and every view lists all its entries, so only the newest is stored whole."""

    def __init__(self, views: Iterable[tuple[str, View]] = ()) -> None:
        self._items: list[str] = []
        self._older: list[tuple[_Piece, ...]] = []
        self._top: View = ()
        for item, view in views:
            self.push(item, view)

    @property
    def item(self) -> str | None:
        """The item of the view on top; None if the stack is empty."""
        return self._items[-1] if self._items else None

    @property
    def items(self) -> Sequence[str]:
        """The items, the one on top last."""
        return self._items

    @property
    def view(self) -> View:
        """The view on top; empty if there is none."""
        return self._top

    def copy(self) -> ViewStack:
        stack = ViewStack()
        stack._items, stack._older, stack._top = list(self._items), list(self._older), self._top
        return stack

    def push(self, item: str, view: View) -> None:
        if self._items:
            self._older.append(_pieces(self._top, view))
        self._items.append(item)
        self._top = view

    def pop(self) -> tuple[str, View]:
        """Remove and return the view on top.

        Raises:
            IndexError: there is none.
        """
        item, view = self._items.pop(), self._top
        self._top = _joined(self._older.pop(), view) if self._older else ()
        return item, view

    def clear(self) -> None:
        self._items.clear()
        self._older.clear()
        self._top = ()

    def all(self) -> list[tuple[str, View]]:
        views = [self._top]
        for pieces in reversed(self._older):
            views.append(_joined(pieces, views[-1]))
        return list(zip(self._items, reversed(views), strict=True)) if self._items else []


def _pieces(old: View, new: View) -> tuple[_Piece, ...]:
    """``old`` in terms of ``new``."""
    places = {entry.id: index for index, entry in enumerate(new)}
    pieces: list[slice | list[ViewEntry]] = []
    for entry in old:
        index, last = places.get(entry.id), pieces[-1] if pieces else None
        if index is None or not (new[index] is entry or new[index] == entry):
            if isinstance(last, list):
                last.append(entry)
            else:
                pieces.append([entry])
        elif isinstance(last, slice) and last.stop == index:
            pieces[-1] = slice(last.start, index + 1)
        else:
            pieces.append(slice(index, index + 1))
    return tuple(tuple(piece) if isinstance(piece, list) else piece for piece in pieces)


def _joined(pieces: Iterable[_Piece], new: View) -> View:
    return tuple(entry for piece in pieces for entry in (new[piece] if isinstance(piece, slice) else piece))


class Views(Struct, frozen=True):
    """The view at one moment, with the stacks for undo and redo."""

    view: View
    undo: ViewStack
    redo: ViewStack
    edits: int
    """Number of the user's choices contained in it."""
    edits_in: Mapping[str, int]
    rewound: frozenset[str]
    known: int
    """Number of entries at that moment."""
