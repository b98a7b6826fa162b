"""The one decision about every tool call: a pure function of the policy and the call.

Order, first match wins: what nothing may lift (malformed input, swecli's own files), deny rules, ask rules, what
the mode forbids, protected places, allow rules, what is proven to only read, what the sandbox contains, and last
what the mode says. How specific a rule is never matters.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import cast

from swecli.core.permissions.paths import inside, is_own, is_secret, protected_reason
from swecli.core.permissions.rules import is_valid, matches_call, parse_rule, path_rule, words_rule
from swecli.core.permissions.types import Call, Decision, Policy, Rule, RuleEffect
from swecli.core.protocol.events import Mode


def decide(policy: Policy, call: Call) -> Decision:
    """Whether the call may run, must be asked about, or is refused, and why."""
    refusal = _hard_refusal(policy, call)
    if refusal is not None:
        return refusal
    for effect in ("deny", "ask"):
        rule = _matching_rule(policy, call, effect)
        if rule is not None and not (policy.yolo and effect == "ask"):
            return _by_rule(rule)
    if policy.yolo:
        return Decision("allow", "Everything runs without a question in this session (--yolo).")
    mode = _effective_mode(policy)
    if _changes_nothing(call):
        return Decision("allow", "This only concerns the session itself.")
    if call.effects.command is not None:
        return _command(policy, call, mode)
    return _paths(policy, call, mode)


# --- what nothing lifts ----------------------------------------------------------------------------------------


def _hard_refusal(policy: Policy, call: Call) -> Decision | None:
    effects = call.effects
    declared = (*effects.reads, *effects.writes, effects.command or "", effects.network or "")
    for text in (*_texts(call.arguments), *declared):
        if "\0" in text:
            return Decision("deny", "The arguments contain a NUL character, which no path or command can hold.")
        if any(0xD800 <= ord(char) < 0xE000 for char in text):
            return Decision("deny", "The arguments contain text that can't be encoded.")
    for path in effects.writes:
        if is_own(path, policy.own_dirs):
            return Decision(
                "deny", f"{path} is swecli's own configuration or data; only you can change it.", evidence=(path,)
            )
    return None


def _texts(value: object) -> Iterable[str]:
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            mapping = cast("Mapping[object, object]", item)
            pending.extend(mapping.keys())
            pending.extend(mapping.values())
        elif isinstance(item, (list, tuple)):
            pending.extend(cast("Iterable[object]", item))


# --- rules ---------------------------------------------------------------------------------------------------------


def _matching_rule(policy: Policy, call: Call, effect: RuleEffect) -> Rule | None:
    for rule in _active(policy, effect):
        if _covers(rule, policy, call):
            return rule
    return None


def _active(policy: Policy, effect: RuleEffect) -> Iterable[Rule]:
    """The rules of one list; a project can only tighten until its folder is trusted."""
    trusted = policy.trust in ("trusted", "session")
    return (
        rule
        for rule in policy.rules
        if rule.effect == effect and not (effect == "allow" and rule.scope == "project" and not trusted)
    )


def _covers(rule: Rule, policy: Policy, call: Call) -> bool:
    command = call.effects.command
    if command is not None and is_valid(rule):
        pattern = parse_rule(rule.text)
        if pattern.kind == "command" and pattern.matches_tool(call.tool):
            plain = _plain_words(command)
            return plain is not None and pattern.matches_words(plain)
    return matches_call(rule, call, policy.home)


def _by_rule(rule: Rule) -> Decision:
    origin = f" ({rule.origin})" if rule.origin else ""
    verb = {"allow": "allows", "ask": "asks about", "deny": "forbids"}[rule.effect]
    return Decision(rule.effect, f"The {rule.scope} rule {rule.text}{origin} {verb} this.", rule=rule)


# --- modes ---------------------------------------------------------------------------------------------------------


def _effective_mode(policy: Policy) -> Mode:
    """The mode, tightened where the workspace was declined or a deny or ask rule can't be understood."""
    if policy.mode in ("accept-edits", "auto") and (policy.trust == "declined" or _broken_rules(policy)):
        return "default"
    return policy.mode


def _broken_rules(policy: Policy) -> bool:
    return any(rule.effect != "allow" and not is_valid(rule) for rule in policy.rules)


def _changes_nothing(call: Call) -> bool:
    effects = call.effects
    touches = effects.reads or effects.writes or effects.command is not None or effects.network is not None
    return (effects.internal or effects.interactive) and not touches


# --- files and hosts -----------------------------------------------------------------------------------------------


def _paths(policy: Policy, call: Call, mode: Mode) -> Decision:
    effects = call.effects
    for path in effects.writes:
        reason = protected_reason(path, call.roots, policy.home)
        if mode == "plan":
            return Decision("deny", f"Plan mode changes nothing, and this would write {path}.", evidence=(path,))
        if reason is not None:
            return Decision("ask", f"Writing {path} always needs a question: {reason}.", evidence=(path,))
    rule = _matching_rule(policy, call, "allow")
    if rule is not None:
        return _by_rule(rule)
    asked = _why_ask(policy, call, mode)
    if asked is not None:
        return asked
    if effects.writes:
        return Decision("allow", f"The mode {mode} allows edits inside the workspace.", evidence=effects.writes)
    if effects.reads:
        return Decision("allow", "Reading inside the workspace needs no question.", evidence=effects.reads)
    if mode == "plan":
        return Decision("deny", f"Plan mode changes nothing, and {call.tool} does not say what it touches.")
    return Decision("ask", f"{call.tool} does not say what it touches.", offer=_offered(policy, call, call.tool))


def _why_ask(policy: Policy, call: Call, mode: Mode) -> Decision | None:
    effects = call.effects
    if effects.network is not None:
        offer = _offered(policy, call, f"WebFetch(domain:{effects.network})")
        return Decision("ask", f"This connects to {effects.network}.", offer=offer, evidence=(effects.network,))
    single = (*effects.writes, *effects.reads)
    one = single[0] if len(set(single)) == 1 else None
    for path in effects.writes:
        if inside(path, call.roots) is None:
            return Decision("ask", f"{path} is outside the workspace and would be written.", evidence=(path,))
        if mode == "default":
            offer = _offered(policy, call, path_rule("Edit", path, call.roots)) if one else None
            return Decision("ask", f"This would change {path}.", offer=offer, evidence=effects.writes)
    for path in effects.reads:
        offer = _offered(policy, call, path_rule("Read", path, call.roots)) if one else None
        if is_secret(path):
            return Decision("ask", f"{path} may hold secrets, by its name.", offer=offer, evidence=(path,))
        if inside(path, call.roots) is None:
            return Decision("ask", f"{path} is outside the workspace.", offer=offer, evidence=(path,))
    return None


def _offered(policy: Policy, call: Call, text: str) -> str | None:
    """``text`` if it is a rule that would allow exactly this call, else None."""
    rule = Rule("allow", text, "session")
    return text if is_valid(rule) and _covers(rule, policy, call) else None


# --- commands ------------------------------------------------------------------------------------------------------


def _command(policy: Policy, call: Call, mode: Mode) -> Decision:
    command = call.effects.command or ""
    if mode == "plan":
        return Decision("deny", "Plan mode runs only commands that are proven to change nothing; this one is not.")
    rule = _matching_rule(policy, call, "allow")
    if rule is not None:
        return _by_rule(rule)
    if mode == "auto" and policy.sandbox == "full":
        return Decision("allow", "The sandbox contains what this command can do.", evidence=("sandbox: full",))
    reason = "This command is not proven to change nothing."
    if mode == "auto":
        reason += " Auto mode has no full sandbox here, so it asks."
    plain = _plain_words(command)
    return Decision("ask", reason, offer=_offered(policy, call, words_rule(plain)) if plain else None)


def _plain_words(command: str) -> list[str] | None:
    """The words of a single command that uses nothing of the shell; None for every other."""
    if any(char in command for char in ";&|<>$`(){}\n*?[]~#=!"):
        return None
    try:
        return shlex.split(command)
    except ValueError:
        return None
