"""All actions of keys, with their default keys. Plain data: read before the first frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

Place = Literal["everywhere", "prompt", "list", "screen", "context", "transcript", "approval"]


class KeyAction(Struct, frozen=True):
    """``keys`` are names such as "ctrl+o", "alt+b", "pageup", "y"; ``place`` is the context in which they apply."""

    name: str
    keys: tuple[str, ...]
    meaning: str
    place: Place


def _actions(context: Place, *rows: tuple[str, str, str]) -> tuple[KeyAction, ...]:
    return tuple(KeyAction(name, tuple(keys.split()), meaning, context) for name, keys, meaning in rows)


ACTIONS: tuple[KeyAction, ...] = (
    *_actions(
        "everywhere",
        ("close", "escape", "close the open panel, clear the selection, interrupt; reject an approval"),
        ("cancel", "ctrl+c", "copy the selection, interrupt or clear; twice on an empty prompt quits"),
        ("next_mode", "shift+tab", "next mode: default, accept-edits, plan, auto"),
        ("expand", "ctrl+o", "short, normal or full view; details of an approval"),
        ("todos", "ctrl+t", "show or hide the todos"),
        ("background", "ctrl+b", "move the running command to the background"),
        ("find", "ctrl+f", "search the transcript"),
        ("take_suggestion", "alt+s", "preview a suggestion about the context, and apply it"),
        ("silence_suggestion", "alt+x", "never suggest this kind of context change again"),
        ("external_editor", "ctrl+g", "write the message in $VISUAL or $EDITOR"),
        ("redraw", "ctrl+l", "redraw the screen"),
        ("mouse", "alt+m", "give the mouse to the terminal for selecting text; take it back"),
        ("suspend", "ctrl+z", "suspend the program"),
        ("page_up", "pageup", "scroll up by a page"),
        ("page_down", "pagedown", "scroll down by a page"),
        ("scroll_home", "home", "to the start; within text, to its start first"),
        ("scroll_end", "end", "to the end, and follow new output"),
        ("turn_previous", "alt+up", "to your previous message, at the top of the screen"),
        ("turn_next", "alt+down", "to your next message; after the last, to the end"),
    ),
    *_actions(
        "prompt",
        ("send", "enter", "send; while the model works: steer it at the next step"),
        ("newline", "shift+enter ctrl+j ctrl+enter alt+enter", "new line; a backslash before Enter does the same"),
        ("complete", "tab", "complete; while the model works: queue; on an empty prompt: browse the transcript"),
        ("older", "up", "on the first line: the previous message, or the queued one to edit"),
        ("newer", "down", "on the last line: the next message"),
        ("palette", "ctrl+p", "command palette: commands, modes, models, themes"),
        ("search_history", "ctrl+r", "search sent messages"),
        ("line_start", "ctrl+a", "to the start of the line"),
        ("line_end", "ctrl+e", "to the end of the line"),
        ("word_left", "alt+b", "back one word"),
        ("word_right", "alt+f", "forward one word"),
        ("kill_right", "ctrl+k", "cut to the end of the line"),
        ("kill_left", "ctrl+u", "cut to the start of the line"),
        ("kill_blank_left", "ctrl+w", "cut the word before the cursor"),
        ("kill_word_left", "alt+backspace", "cut the previous word"),
        ("kill_word_right", "alt+d", "cut the next word"),
        ("yank", "ctrl+y", "paste the cut text"),
        ("yank_older", "alt+y", "right after pasting: the text cut before it"),
        ("undo", "ctrl+underscore", "undo a change"),
        ("continue_session", "ctrl+n", "before the first message, on an empty prompt: continue the newest session"),
        ("paste", "ctrl+v", "paste the clipboard's image or text"),
        ("leave", "ctrl+d", "quit, on an empty prompt"),
    ),
    *_actions(
        "list",
        ("previous", "up ctrl+p", "the previous entry"),
        ("next", "down ctrl+n", "the next entry"),
    ),
    *_actions(
        "screen",
        ("remove", "ctrl+x", "remove the entry: revoke a grant, unset a setting, stop a job, delete a session"),
        ("switch", "tab", "switch to the other settings file"),
    ),
    *_actions(
        "context",
        ("pin", "p", "pin the item so that it is never removed, or unpin it"),
        ("drop", "d", "drop the item from the conversation"),
        ("offload", "o", "replace the item with a reference"),
        ("restore_item", "r", "restore the item in full"),
        ("apply_changes", "a", "apply the choices"),
        ("delay_changes", "l", "let the choices wait for the next compaction"),
        ("discard_changes", "x", "discard the choices"),
        ("sort_items", "s", "sort by order, size, age or last use"),
        ("filter_items", "f", "show only one kind of item; in the cache view, only misses"),
        ("search_items", "/", "search"),
        ("show_keys", "?", "list all keys of the screen"),
        ("keep_item", "k", "in a compaction plan: keep the item word for word"),
        ("summarise_item", "m", "in a compaction plan: replace the item with the summary; else: mark a range to fold"),
        ("draft_summary", "g", "in a compaction plan: have the model write the summary"),
        ("edit_summary", "e", "in a compaction plan: edit the summary"),
        ("next_column", "tab right", "in a compaction plan: the next column"),
        ("previous_column", "left", "in a compaction plan: the previous column"),
        ("show_history", "h", "in a compaction plan: the earlier compactions"),
        ("undo_compaction", "u", "in the history of compactions: undo or redo up to this one"),
        ("save_request", "w", "in the wire view: save the request, secrets masked"),
        ("show_changes", "c", "in the wire view: only what the previous request did not contain"),
    ),
    *_actions(
        "transcript",
        ("block_previous", "up k", "the previous block"),
        ("block_next", "down j", "the next block"),
        ("block_toggle", "enter space", "expand or collapse the block"),
        ("block_copy", "y c", "copy the block"),
        ("block_editor", "o", "open the block, or its file, in the editor"),
        ("block_undo", "u", "on a compaction: undo it and all later ones, or redo it"),
        ("block_context", "w", "show what was in the context when this was written"),
        ("find_next", "n", "the next match"),
        ("find_previous", "N", "the previous match"),
        ("transcript_page_up", "b", "one page up"),
        ("transcript_page_down", "f", "one page down"),
        ("transcript_turn_previous", "K", "to your previous message"),
        ("transcript_turn_next", "J", "to your next message"),
        ("transcript_home", "g", "to the start"),
        ("transcript_end", "G", "to the end"),
    ),
    *_actions(
        "approval",
        ("approve_once", "y", "run it this time"),
        ("approve_always", "a", "run it, and don't ask again for anything the shown rule matches"),
        ("reject", "n", "reject, with a note on what to do instead"),
        ("approve_edits", "w", "approve all waiting edits"),
        ("change_call", "e", "edit it first: the command, or which changes to apply"),
        ("grant_span", "s", "how long the rule applies"),
        ("full_view", "v", "show all of it full-screen, or less"),
        ("tick_all", "+", "in the list of hunks: tick all"),
        ("tick_none", "-", "in the list of hunks: tick none"),
    ),
)
"""In order of display."""

BY_NAME: Mapping[str, KeyAction] = {action.name: action for action in ACTIONS}

_OTHER_NAMES = {
    "esc": "escape",
    "return": "enter",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "pgdown": "pagedown",
    "del": "delete",
    "ins": "insert",
    "spacebar": "space",
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+[": "escape",
    "ctrl+_": "ctrl+underscore",
    "ctrl+/": "ctrl+underscore",
    "ctrl+space": "ctrl+@",
}
_MODIFIERS = ("ctrl", "alt", "shift", "super")
_EDITING = ("enter", "escape", "tab", "space", "backspace", "delete", "insert", "underscore", "@")
_MOVING = ("home", "end", "pageup", "pagedown", "up", "down", "left", "right")
_NAMED = frozenset((*_EDITING, *_MOVING))
_NAME = lazy_pattern(r"f([1-9]|1[0-9]|2[0-4])")
_NEVER_APPROVES = frozenset(("enter", "space", "escape", "tab"))


def normal(key: str) -> str:
    """The key's canonical name, for example "escape" for "Esc".

    Raises:
        ValueError: it is not a key; one sentence.
    """
    text = key.strip()
    if len(text) == 1 and text.isprintable() and not text.isspace():
        return text
    lowered = _OTHER_NAMES.get(text.lower(), text.lower())
    *modifiers, name = lowered.split("+") if lowered.strip("+") else [lowered]
    name = _OTHER_NAMES.get(name, name)
    known = name in _NAMED or _NAME.fullmatch(name) or (modifiers and len(name) == 1 and name.isprintable())
    if not known or any(part not in _MODIFIERS for part in modifiers) or len(set(modifiers)) < len(modifiers):
        raise ValueError(f'has no key named {text[:30]!r}; keys are "ctrl+x", "alt+x", "f5", "pageup", "x"')
    return "+".join([*(part for part in _MODIFIERS if part in modifiers), name])


def resolve(changes: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The keys of every action. A key that the changes assign to an action is removed from the others in the same
    place, unless they were changed as well."""
    keys = {action.name: changes.get(action.name, action.keys) for action in ACTIONS}
    for name, given in changes.items():
        for other in ACTIONS:
            if other.name != name and other.name not in changes and _meet(BY_NAME[name].place, other.place):
                keys[other.name] = tuple(key for key in keys[other.name] if key not in given)
    return keys


def problem(changes: Mapping[str, tuple[str, ...]]) -> str:
    """The problem with the changes, as the rest of a sentence that begins with "must"; empty if there is none."""
    owners: dict[str, list[str]] = {}
    for name, keys in changes.items():
        context = BY_NAME[name].place
        for key in keys:
            if context in ("everywhere", "prompt", "list", "screen") and len(key) == 1:
                return f"must not bind {key} alone to {name}: you type that letter there"
            if name.startswith("approve_") and key in _NEVER_APPROVES:
                return f"must not bind {key} to {name}: it is too easy to approve something by accident"
            for other in owners.get(key, []):
                if _meet(context, BY_NAME[other].place):
                    return f"must not bind {key} to both {other} and {name}"
            owners.setdefault(key, []).append(name)
    if any(not resolve(changes)[name] for name in ("send", "close")):
        return "must leave a key for send and for close"
    return ""


def _meet(context: Place, other: Place) -> bool:
    return context == other or "everywhere" in (context, other)
