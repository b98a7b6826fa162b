"""What Textual works out anew for each application and each message, though it follows from the same input: parsed
style sheets, the rules that hold for a widget, the handlers of a message. Here it is worked out once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.message import Message
from textual.message_pump import MessagePump

APPLY = Stylesheet.apply
DISPATCH = MessagePump._get_dispatch_methods
PARSE = Stylesheet.parse
PARSE_RULES = Stylesheet._parse_rules
REPLACE = Stylesheet.replace_rules.__func__  # type: ignore[attr-defined]


class Found:
    """The cache that ``Stylesheet.apply`` looks in. Its own keys hold for the children of one widget; here the key is
    all that the selectors look at in a node and in those around it."""

    def __init__(self, rules: dict[Any, Any], node: DOMNode, pseudo_classes: list[str]) -> None:
        self._rules = rules
        self._node = node
        self._pseudo_classes = pseudo_classes
        self._key: tuple[Any, ...] = ()

    def get(self, key: object) -> Any:
        path = self._node.css_path_nodes
        self._key = tuple((type(node), node._id, node.classes) for node in path)
        if self._pseudo_classes:
            self._key += tuple(node.has_pseudo_class(name) for node in path for name in self._pseudo_classes)
        return self._rules.get(self._key)

    def __setitem__(self, key: object, value: Any) -> None:
        self._rules[self._key] = value


class Selected(Stylesheet):
    """The rules of a sheet that may hold for nodes of one type, id and set of classes."""

    def __init__(self, whole: Sheet, names: set[str]) -> None:
        super().__init__()
        self._whole = whole
        self._rules_map = {name: rules for name, rules in whole.rules_map.items() if name in names}
        wanted = {rule for rules in self._rules_map.values() for rule in rules}
        self._rules = [rule for rule in whole.rules if rule in wanted]
        self._pseudo_classes = sorted(set().union(*(rule.pseudo_classes for rule in self._rules)))
        self._found: dict[Any, Any] = {}

    def apply(self, node: DOMNode, *, animate: bool = False, cache: Any = None) -> None:
        APPLY(self, node, animate=animate, cache=Found(self._found, node, self._pseudo_classes))  # type: ignore[arg-type]

    def _process_component_classes(self, node: DOMNode) -> None:
        self._whole._process_component_classes(node)


class Sheet(Stylesheet):
    """What all applications with the same rules have in common."""

    def __init__(self, rules: list[Any]) -> None:
        super().__init__()
        self._rules = rules
        self._selected: dict[Any, Selected] = {}

    def apply(self, node: DOMNode, *, animate: bool = False, cache: Any = None) -> None:
        key = type(node), node._id, node.classes
        selected = self._selected.get(key)
        if selected is None:
            selected = self._selected[key] = Selected(self, node._selector_names)
        selected.apply(node, animate=animate)


class Kept:
    """All that is kept."""

    def __init__(self) -> None:
        self._parsed: dict[Any, Any] = {}
        self._sheets: dict[int, Sheet] = {}
        self._handlers: dict[Any, Any] = {}

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Stylesheet, "_parse_rules", lambda *given, **named: self._parse_rules(*given, **named))
        patch.setattr(Stylesheet, "parse", lambda sheet: self._parse(sheet))
        patch.setattr(Stylesheet, "apply", lambda sheet, node, **named: self._apply(sheet, node, **named))
        patch.setattr(Stylesheet, "replace_rules", classmethod(_replace_rules))
        patch.setattr(MessagePump, "_get_dispatch_methods", lambda *given: self._handlers_of(*given))

    def _parse_rules(self, sheet: Stylesheet, css: str, *given: Any, **named: Any) -> Any:
        key = (css, given, tuple(named.items()), tuple(sheet._variables.items()))
        if key not in self._parsed:
            self._parsed[key] = PARSE_RULES(sheet, css, *given, **named)
        return self._parsed[key]

    def _parse(self, sheet: Stylesheet) -> None:
        key = (tuple(sheet.source.items()), tuple(sheet._variables.items()))
        if key not in self._parsed:
            PARSE(sheet)
            self._parsed[key] = sheet._rules
        sheet._rules, sheet._rules_map, sheet._require_parse = self._parsed[key], None, False

    def _apply(self, sheet: Stylesheet, node: DOMNode, *, animate: bool = False, cache: Any = None) -> None:
        rules = sheet.rules
        if id(rules) not in self._sheets:
            self._sheets[id(rules)] = Sheet(rules)  # which holds the rules, so that no others get their address
        self._sheets[id(rules)].apply(node, animate=animate)

    def _handlers_of(self, pump: MessagePump, name: str, message: Message) -> Iterator[tuple[type, Any]]:
        """Handlers that depend on no more than the types; those with a selector are looked for each time."""
        key = type(pump), name, type(message)
        if key not in self._handlers:
            self._handlers[key] = _handlers(type(pump), name, type(message))
        handlers = self._handlers[key]
        if handlers is None:
            yield from DISPATCH(pump, name, message)
            return
        for cls, methods in handlers:
            if message._no_default_action:
                break
            for method in methods:
                yield cls, method.__get__(pump, cls)


def _handlers(pump: type, name: str, message: type[Message]) -> list[tuple[type, list[Any]]] | None:
    """What ``MessagePump._get_dispatch_methods`` finds, class by class; None if a selector decides."""
    found: list[tuple[type, list[Any]]] = []
    seen: set[Any] = set()
    messages: list[Any] = [each for each in message.__mro__ if issubclass(each, Message)]
    for cls in pump.__mro__:
        methods: list[Any] = []
        decorated = cls.__dict__.get("_decorated_handlers") or {}
        for method, selectors in (handler for each in messages for handler in decorated.get(each, ())):
            if selectors:
                return None
            if method not in seen:
                seen.add(method)
                methods.append(method)
        named = cls.__dict__.get(f"_{name}") or cls.__dict__.get(name)
        if named is not None and not getattr(named, "_textual_on", None):
            methods.append(named)
        if methods:
            found.append((cls, methods))
    return found


def _replace_rules(cls: type[Stylesheet], node: DOMNode, rules: Any, animate: bool = False) -> None:
    """To set the same rules again changes nothing."""
    base = node.styles.base
    if _same(base.__dict__.get("_kept"), rules, base._updates) and not (animate and "transitions" in rules):
        node.notify_style_update()
        return
    REPLACE(cls, node, rules, animate)
    base.__dict__["_kept"] = rules, base._updates


def _same(kept: tuple[Any, int] | None, rules: Any, updates: int) -> bool:
    return kept is not None and kept[0] is rules and kept[1] == updates
