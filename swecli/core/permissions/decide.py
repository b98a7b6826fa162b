"""The one decision about every tool call: a pure function of the policy and the call.

Order, first match wins: hard refusals and questions (malformed input, swecli's own files), deny rules, ask rules, the
mode's prohibitions, protected places, allow rules, calls proven read-only, calls the sandbox contains, and last the
mode's default. The specificity of a rule never matters.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from typing import Final, cast

from msgspec.structs import replace

from swecli.core.permissions.commands import (
    Judgement,
    Withheld,
    allowed_by,
    beyond_landlock,
    covered_by_file,
    forbids,
    has_covered_files,
    hides,
    judge,
    lifted,
    named_secret,
    offer,
    only_edits,
    reads_elsewhere,
    shows_history,
    unfollowed,
    withheld,
)
from swecli.core.permissions.git_facts import is_git_settings
from swecli.core.permissions.paths import inside, is_own, is_secret_in
from swecli.core.permissions.protected import installed_reason, protected_reason
from swecli.core.permissions.rules import PATH_ARGUMENTS, active_rules, is_valid, matches_call, parse_rule, path_rule
from swecli.core.permissions.shell.destructive import Danger
from swecli.core.permissions.shell.lexer import hidden_character
from swecli.core.permissions.shell.losses import merged
from swecli.core.permissions.shell.network import needs_network
from swecli.core.permissions.shell.proof import Part
from swecli.core.permissions.types import MEMORY_TOOL, SANDBOXED, Call, Decision, Policy, Rule, RuleEffect
from swecli.core.protocol.events import Mode
from swecli.core.protocol.modes import MODES


def after_untrusted(policy: Policy, call: Call, decision: Decision, *, proven: bool) -> Decision:
    """The decision, changed from allow to ask if the call leaves the workspace after untrusted text arrived.
    ``proven``: the call is a command that is proven to only read inside the workspace."""
    if decision.outcome != "allow" or not policy.untrusted or proven or decision.contained or call.typed:
        return decision
    where = _exit_reason(policy, call)
    if not where:
        return decision
    origins = ", ".join(policy.untrusted[:3])
    reason = f"This {where}, and the conversation holds text from {origins}, which may contain instructions."
    return replace(decision, outcome="ask", reason=reason, offers=(), offer_note=NO_RULE_NOW)


def _exit_reason(policy: Policy, call: Call) -> str:
    """How the call leaves the workspace, as a clause; empty if it stays inside or returns to the only source of the
    untrusted text."""
    effects = call.effects
    if call.tool == MEMORY_TOOL and effects.writes:
        return "persists into later sessions"
    if effects.command is not None:
        return "is not sandboxed"
    if effects.external and set(policy.untrusted) != {effects.external}:
        return f"goes to {effects.external}"
    if effects.network is not None and set(policy.untrusted) != {effects.network}:
        return f"connects to {effects.network}"
    for path in (*effects.reads, *effects.writes):
        if inside(path, call.roots) is None and (
            path in effects.writes or inside(path, (*policy.readable, *policy.memory)) is None
        ):
            return f"goes to {path}, {OUTSIDE}"
    return ""


NO_RULE_NOW = "No rule can allow this while the conversation contains text from strangers."

OUTSIDE = "outside the workspace"
"""Ending of a reason to ask about a file's place."""

UNREAD = "the model has not read it"
"""Ending of a reason to ask that reading the file removes."""


def decide(policy: Policy, call: Call) -> Decision:
    """Whether the call runs, asks or is refused, and why."""
    return _noted(_decided(policy, call), call)


def _decided(policy: Policy, call: Call) -> Decision:
    refusal = _malformed(call)
    if refusal is not None:
        return refusal
    call = _resolved(policy, call)
    refusal = _own_files(policy, call)
    if refusal is not None:
        return refusal
    judgement = judge(policy, call) if call.effects.command is not None else None
    if judgement is not None:
        refusal = _refused_command(call.effects.command or "", judgement)
        if refusal is not None:
            return refusal
    rule = _matching_rule(policy, call, "deny", judgement)
    if rule is not None:
        return _by_rule(rule)
    hidden = _may_hide_denied(policy, call, judgement) if judgement is not None else None
    if hidden is not None:
        return hidden
    rule = None if policy.yolo else _matching_rule(policy, call, "ask", judgement)
    if rule is not None:
        return _by_rule(rule)
    return _shown_to(policy, judgement, _by_mode(policy, call, judgement))


def _shown_to(policy: Policy, judgement: Judgement | None, decision: Decision) -> Decision:
    """The decision, or a question if it would let a command show what a rule about reading covers; where the sandbox
    can hide such files, the command runs without seeing them."""
    refused = policy.mode == "plan" and decision.outcome == "deny"
    unbound = not refused and (policy.yolo or (decision.outcome == "allow" and not decision.contained))
    if policy.yolo and not refused:
        proven = judgement is not None and judgement.proven
        decision = Decision("allow", "This session runs everything without approval (--yolo).", reads_only=proven)
    if judgement is None:
        return decision
    shown = withheld(judgement)
    if shown is not None and shown.certain and not refused and decision.outcome != "allow":
        return _withheld(shown)
    if not unbound:
        return decision
    unclear = unfollowed(judgement) if shown is None or shown.maskable else None
    shown = unclear if shown is None or (unclear is not None and not unclear.maskable) else shown
    if shown is None:
        return decision
    if policy.masks and shown.maskable:
        return replace(decision, masked=True)
    if shown is unclear and not has_covered_files(judgement):
        return decision
    return _withheld(shown)


def _by_mode(policy: Policy, call: Call, judgement: Judgement | None) -> Decision:
    """The mode's decision, after protected places, allow rules, the proof and the sandbox."""
    mode = "default" if mode_refusal(policy, policy.mode) else policy.mode
    if _changes_nothing(call):
        return Decision("allow", "This affects only the session.")
    if call.effects.external:
        return after_untrusted(policy, call, _external(policy, call, mode), proven=False)
    if judgement is not None:
        decision = _with_sandbox(policy, call, judgement, _command(policy, call, mode, judgement))
        return after_untrusted(policy, call, decision, proven=judgement.proven and not call.effects.outside)
    return after_untrusted(policy, call, _paths(policy, call, mode), proven=False)


def _resolved(policy: Policy, call: Call) -> Call:
    """The call with each declared path also as it resolves now; a match of either counts."""
    effects = call.effects
    reads, writes = (
        tuple(dict.fromkeys(form for path in paths for form in (posixpath.normpath(path), policy.facts.resolve(path))))
        for paths in (effects.reads, effects.writes)
    )
    return replace(call, effects=replace(effects, reads=reads, writes=writes))


# --- hard rules --------------------------------------------------------------------------------------------------


LONGEST_PATH: Final = 4_095
"""Bytes of a path that Linux opens at most (PATH_MAX in limits.h, less the final NUL); macOS opens fewer."""
LONGEST_COMMAND: Final = 131_071
"""Bytes of one argument that Linux starts a program with at most (execve(2), MAX_ARG_STRLEN, less the final NUL)."""


def _malformed(call: Call) -> Decision | None:
    effects = call.effects
    if effects.command is not None and _size(effects.command) > LONGEST_COMMAND:
        return Decision(
            "deny",
            f"The command is longer than {LONGEST_COMMAND:,} bytes, too long for any program to start. "
            "Write it to a script file and run that.",
        )
    if any(_size(path) > LONGEST_PATH for path in (*effects.reads, *effects.writes, *_given(call))):
        return Decision("deny", f"A path has more than {LONGEST_PATH:,} bytes, so it can't name a file.")
    declared = (*effects.reads, *effects.writes, effects.command or "", effects.network or "")
    for text in (*_texts(call.arguments), *declared):
        if "\0" in text:
            return Decision("deny", "The arguments contain a NUL character, which paths and commands cannot contain.")
        if not _encodable(text):
            return Decision("deny", "The arguments contain text that cannot be encoded.")
    return None


def _size(text: str) -> int:
    return len(text) if len(text) > LONGEST_COMMAND else len(text.encode("utf-8", "surrogatepass"))


def _given(call: Call) -> Iterable[str]:
    """The paths as the model wrote them."""
    values = (call.arguments.get(key) for key in PATH_ARGUMENTS)
    return (value for value in values if isinstance(value, str))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _own_files(policy: Policy, call: Call) -> Decision | None:
    for path in call.effects.writes:
        of_memory = call.tool == MEMORY_TOOL and inside(path, policy.memory) is not None
        if is_own(path, policy.own_dirs) and not of_memory:
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


def _matching_rule(policy: Policy, call: Call, effect: RuleEffect, judgement: Judgement | None = None) -> Rule | None:
    for rule in active_rules(policy, effect):
        if _covers(rule, policy, call) or (judgement is not None and forbids(rule, policy, call, judgement)):
            return rule
    return None


def _allowing_rule(policy: Policy, call: Call, reaches: Callable[[Rule], bool]) -> Rule | None:
    """The rule that allows a call that is no command. ``reaches``: whether a right of a command's file goes so far."""
    rules = (rule for rule in active_rules(policy, "allow") if _covers(rule, policy, call))
    return next((rule for rule in rules if rule.scope != "command" or reaches(rule)), None)


def _covers(rule: Rule, policy: Policy, call: Call) -> bool:
    return matches_call(rule, call, policy.home)


def _by_rule(rule: Rule) -> Decision:
    if rule.why:
        return Decision(rule.effect, rule.why, rule=rule)
    origin = f" ({rule.origin})" if rule.origin else ""
    verb = {"allow": "allows", "ask": "asks about", "deny": "forbids"}[rule.effect]
    return Decision(rule.effect, f"The {rule.scope} rule {rule.text}{origin} {verb} this.", rule=rule)


# --- modes ---------------------------------------------------------------------------------------------------------


def mode_refusal(policy: Policy, mode: Mode) -> str:
    """Why the mode is not available, as a sentence: the workspace was declined, or a deny or ask rule is invalid. Empty
    if it is."""
    if not MODES[mode].accepts_edits or policy.yolo:
        return ""
    if policy.trust == "declined":
        return f"Mode {mode} is off: you declined to trust this folder."
    return f"Mode {mode} is off: a deny or ask rule is invalid." if _broken_rules(policy) else ""


def _broken_rules(policy: Policy) -> bool:
    return any(rule.effect != "allow" and not is_valid(rule) for rule in policy.rules)


def _changes_nothing(call: Call) -> bool:
    effects = call.effects
    touches = effects.reads or effects.writes or effects.external
    touches = touches or effects.command is not None or effects.network is not None
    return (effects.internal or effects.interactive) and not touches


# --- other programs -----------------------------------------------------------------------------------------------


def _external(policy: Policy, call: Call, mode: Mode) -> Decision:
    """A call that an external program carries out: the sandbox does not contain it, and its effects are unknown."""
    program = call.effects.external
    if mode == "plan" and not call.effects.vouched:
        return Decision("deny", f"Plan mode is read-only, and {program} may change something.", evidence=(program,))
    rule = _allowing_rule(policy, call, lambda rule: parse_rule(rule.text).tools == (call.tool,))
    if rule is not None:
        return _by_rule(rule)
    if call.typed:
        return Decision("allow", "You named this yourself.", evidence=(program,))
    if call.effects.vouched:
        return Decision("allow", f"You trust {program}, which marks this call as read-only.", evidence=(program,))
    reason = f"{program[:1].upper()}{program[1:]} runs this and is not sandboxed."
    return Decision("ask", reason, offers=_offered(policy, call, call.tool))


# --- files and hosts -----------------------------------------------------------------------------------------------


def _paths(policy: Policy, call: Call, mode: Mode) -> Decision:
    effects = call.effects
    for path in effects.writes:
        typed_memory = call.typed and call.tool == MEMORY_TOOL and inside(path, policy.memory) is not None
        reason = None if typed_memory else protected_reason(path, call.roots, policy.home)
        reason = reason or installed_reason(path, call.roots)
        if mode == "plan":
            return Decision("deny", f"Plan mode is read-only, and this would write {path}.", evidence=(path,))
        if reason is not None:
            return Decision("ask", f"Writing {path} always asks: {reason}.", evidence=(path,))
        if (names := policy.facts.names_elsewhere(path, call.roots)) > 0:
            more = "one more name" if names == 1 else f"{names} more names"
            reason = f"it has {more} (hard links) outside the workspace, which would change too"
            return Decision("ask", f"Writing {path} always asks: {reason}.", evidence=(path,))
    rule = _allowing_rule(policy, call, lambda rule: _within_rights(rule, policy, call))
    if rule is not None:
        return _by_rule(rule)
    if call.typed:
        return Decision("allow", "You typed this.", evidence=effects.writes)
    asked = _why_ask(policy, call, mode)
    if asked is not None:
        return asked
    if effects.writes:
        return Decision("allow", f"Mode {mode} allows edits inside the workspace.", evidence=effects.writes)
    if effects.reads:
        return Decision("allow", "Reading inside the workspace needs no approval.", evidence=effects.reads)
    if mode == "plan":
        return Decision("deny", f"Plan mode is read-only, and {call.tool} does not declare its effects.")
    return Decision("ask", f"{call.tool} does not declare its effects.", offers=_offered(policy, call, call.tool))


def _within_rights(rule: Rule, policy: Policy, call: Call) -> bool:
    """Whether the right that a command's or skill's file grants reaches this far: to a named host, and to files that
    accept-edits mode would not ask about."""
    return parse_rule(rule.text).kind == "domain" or _why_ask(policy, call, "accept-edits") is None


def _noted(decision: Decision, call: Call) -> Decision:
    """The decision with a note on what else the offered rule would allow, or why there is none."""
    if decision.outcome != "ask" or decision.offer_note:
        return decision
    if not decision.offers:
        several = len(set(call.effects.writes)) > 1 and decision.reason.startswith("This would change ")
        rule = decision.rule
        who = rule.origin if rule is not None and rule.why else "swecli"  # a command that always asks, such as /commit
        why = "this changes several files" if several else f"{who} always asks about this"
        return replace(decision, offer_note=f"Can't be allowed in general: {why}.")
    pattern = parse_rule(decision.offers[0])
    match pattern.kind:
        case "write":
            what = "all further edits to this file"
        case "read":
            what = "further reads of this file"
        case "domain":
            what = f"all pages of {pattern.domain} and its subdomains"
        case _:
            what = f"all further calls of {call.tool}"
    return replace(decision, offer_note=f"Covers {what}.")


def _why_ask(policy: Policy, call: Call, mode: Mode) -> Decision | None:
    effects = call.effects
    if effects.network is not None and call.tool == "web_search":
        reason = f"This sends the search to {effects.network}."
        return Decision("ask", reason, offers=_offered(policy, call, "WebSearch"), evidence=(effects.network,))
    if effects.network is not None:
        offers = _offered(policy, call, f"WebFetch(domain:{effects.network})")
        return Decision("ask", f"This connects to {effects.network}.", offers=offers, evidence=(effects.network,))
    single = (*effects.writes, *effects.reads)
    only_path = single[0] if len(set(single)) == 1 else None
    for path in effects.writes:
        if inside(path, call.roots) is None:
            return Decision("ask", f"This would write {path}, {OUTSIDE}.", evidence=(path,))
        if is_secret_in(path, call.roots, policy.facts.secret_names):
            return Decision("ask", f"This would write {path}, which may hold secrets.", evidence=(path,))
        if (hidden := hidden_character(path) or _blank_control(path)) is not None:
            return Decision("ask", f"The path {path!r} contains the hidden character {hidden}.", evidence=(path,))
        if mode == "default":
            offers = _offered(policy, call, path_rule("Edit", path, call.roots)) if only_path else ()
            return Decision("ask", f"This would change {path}.", offers=offers, evidence=effects.writes)
    for path in effects.unread:
        offers = _offered(policy, call, path_rule("Edit", path, call.roots)) if only_path else ()
        return Decision("ask", f"This would overwrite {path}, and {UNREAD}.", offers=offers, evidence=(path,))
    known = (*call.roots, *policy.readable, *(policy.memory if call.tool == MEMORY_TOOL else ()))
    for path in effects.reads:
        if is_secret_in(path, call.roots, policy.facts.secret_names):
            reason = f"{path} may hold secrets."
        elif inside(path, known) is None:
            reason = f"{path} is {OUTSIDE}."
        elif is_git_settings(path) and policy.facts.credentials_in(path):
            reason = f"{path} may hold a password or token."
        else:
            continue
        offers = _offered(policy, call, path_rule("Read", path, call.roots)) if only_path else ()
        return Decision("ask", reason, offers=offers, evidence=(path,))
    return None


def _blank_control(path: str) -> str | None:
    """A line break or tab in a name, as U+XXXX: ordinary in a command, but in a name it hides the rest."""
    return next((f"U+{ord(char):04X}" for char in path if char in "\n\t"), None)


def _offered(policy: Policy, call: Call, text: str) -> tuple[str, ...]:
    """``text`` if it is a rule that would allow exactly this call."""
    rule = Rule("allow", text, "session")
    return (text,) if is_valid(rule) and _covers(rule, policy, call) else ()


# --- commands ------------------------------------------------------------------------------------------------------


def _refused_command(command: str, judgement: Judgement) -> Decision | None:
    for danger in judgement.dangers:
        if danger.refuse:
            return Decision("deny", danger.reason, evidence=danger.evidence)
    if judgement.unread is not None and judgement.unproven is not None and "<<" not in command:
        return Decision("deny", f"swecli cannot read this command: {judgement.unread}.")
    return None


def _may_hide_denied(policy: Policy, call: Call, judgement: Judgement) -> Decision | None:
    """Ask if a deny rule about commands may match a hidden part of this one."""
    if judgement.proven:
        return None
    rules = [rule for rule in active_rules(policy, "deny") if hides(rule, policy, call, judgement)]
    if not rules:
        return None
    which = f"The rule {rules[0].text}" if len(rules) == 1 else f"A deny rule such as {rules[0].text}"
    computed = (
        "part of it is computed when it runs" if judgement.has_computed_words else "swecli cannot follow all of it"
    )
    return Decision("ask", f"{which} may forbid this, because {computed}.")


def _withheld(objection: Withheld) -> Decision:
    """Ask about a command that may show, without naming it, a file that a rule about reading covers."""
    reason = (
        objection.reason[:1].upper() + objection.reason[1:]
        if objection.reason.startswith("your ")
        else objection.reason
    )
    note = f"Can't be allowed in general: your rule {objection.rule.text} applies."
    return Decision("ask", reason, offer_note=note, evidence=(reason,), git_knows=objection.git_knows)


def _command(policy: Policy, call: Call, mode: Mode, judgement: Judgement) -> Decision:
    outside = Decision(
        "ask",
        "The model asks to run this unsandboxed.",
        offer_note="Can't be allowed in general: unsandboxed runs always ask.",
    )
    if judgement.proven:
        if call.effects.outside:
            return outside
        return Decision("allow", "This command is proven read-only inside the workspace.", reads_only=True)
    why = judgement.reason
    evidence = tuple(f"{_text(part)}{part.reason}" for part in judgement.parts if part.reason is not None)[:10]
    if mode == "plan":
        if judgement.only_reads_elsewhere:
            knows = any(part.git_knows for part in judgement.parts)
            reason = f"This command may leave the workspace: {why}."
            return Decision("ask", reason, evidence=evidence, only_reads=True, git_knows=knows)
        return Decision("deny", f"Plan mode runs only read-only commands: {judgement.effect}.", evidence=evidence)
    rules = active_rules(policy, "allow")
    edits = MODES[mode].accepts_edits and only_edits(rules, policy, call, judgement)
    dangers = [danger for danger in judgement.dangers if not (edits and danger.edits)]
    unasked = mode == "auto" or any(rule.text == SANDBOXED for rule in rules)
    unasked = unasked or covered_by_file(rules, policy, call, judgement)
    uncontained = _uncontained(policy, call, judgement) if unasked else ""
    dangers = [danger for danger in dangers if _presses(danger, policy, contained=uncontained is None)]
    if dangers and not lifted(rules, dangers):
        return _dangerous(policy, call, judgement, evidence)
    if judgement.unread is not None:
        return _asked(
            policy, call, judgement, f"swecli cannot read part of this command: {judgement.unread}.", evidence
        )
    if call.effects.outside:
        return _warned(replace(outside, evidence=evidence), judgement)
    # A rule would let it leave the sandbox.
    stays = uncontained is None and any(danger.edits or danger.confined for danger in judgement.dangers)
    spelled = lifted(rules, [danger for danger in judgement.dangers if danger.harmless])
    rule = allowed_by(rules, policy, call, judgement) if spelled and not stays else None
    if rule is not None:
        return _by_rule(rule)
    if dangers:
        return _dangerous(policy, call, judgement, evidence)
    if edits:
        return Decision("allow", f"Mode {mode} allows file changes inside the workspace.", evidence=evidence)
    if uncontained is None:
        full = policy.sandbox == "full"
        holds = "contains what this command can do" if full else "holds this command's writes and connections"
        reason, label = f"The sandbox {holds}.", "full" if full else "writes and network"
        return Decision("allow", reason, evidence=(f"sandbox: {label}",), contained=True)
    why = uncontained or why
    if MODES[mode].accepts_edits:
        why = next((part.no_edit for part in judgement.parts if part.reason == why and part.no_edit), why)
    reason = f"{_sentence(why, judgement)}, so it needs your approval."
    if mode == "auto" and policy.sandbox != "full" and not policy.holds:
        reason += " Auto mode asks because there is no full sandbox here."
    return _warned(_asked(policy, call, judgement, reason, evidence), judgement)


def _with_sandbox(policy: Policy, call: Call, judgement: Judgement, decision: Decision) -> Decision:
    """The question, with whether a full sandbox contains the command, and then with the rule about such commands if
    there is no other."""
    asks = decision.outcome == "ask" and not call.effects.outside
    if not asks or policy.sandbox != "full" or _uncontained(policy, call, judgement) is not None:
        return decision
    if any(needs_network(part.words) for part in judgement.parts):
        return decision  # inside, it would fail and be asked about once more
    decision = replace(decision, containable=True)
    if decision.offers or decision.danger or judgement.unread is not None:
        return decision
    note = "Covers commands that the sandbox contains; they run inside it."
    return replace(decision, offers=(SANDBOXED,), offer_note=note)


def _presses(danger: Danger, policy: Policy, *, contained: bool) -> bool:
    """Whether the danger asks by itself. What /undo restores does not, but an edit in place only in a sandbox."""
    if danger.confined and contained and policy.sandbox == "full":
        return False
    return not danger.harmless and (not danger.undone or (danger.edits and not contained))


def _uncontained(policy: Policy, call: Call, judgement: Judgement) -> str | None:
    """Why the sandbox does not suffice to run a command without a question, as a clause (empty: no reason to name);
    None if it does."""
    if policy.sandbox != "full" and not policy.holds:
        return ""
    if judgement.back is not None:
        return judgement.back.reason
    if reads_elsewhere(policy, call, judgement):
        return ""
    elsewhere = next((danger.reason.rstrip(".") for danger in judgement.dangers if danger.harmless), None)
    if elsewhere is not None:
        return elsewhere
    if subcommand := shows_history(judgement):
        return f"git {subcommand} may show files of the history, which no sandbox hides"
    secret = named_secret(judgement, call.roots)
    if secret is not None:
        return f"{secret} may hold secrets"
    return None if policy.sandbox == "full" else beyond_landlock(judgement)


def _sentence(why: str, judgement: Judgement) -> str:
    """The clause as a sentence, capitalised unless it begins with a word of the command or a file name."""
    first = why.partition(" ")[0]
    files = {word.text for item in judgement.started for word in (*item.found.reads, *item.found.writes)}
    literal = "." in first or "/" in first or first in files or any(first in part.words for part in judgement.parts)
    return why if literal else why[:1].upper() + why[1:]


_MOST_DANGERS: Final = 3
"""Dangers of one command that its warning names."""


def _dangerous(policy: Policy, call: Call, judgement: Judgement, evidence: tuple[str, ...]) -> Decision:
    shown = dict.fromkeys(line for danger in judgement.dangers for line in danger.evidence)
    warning = [danger for danger in judgement.dangers if not danger.harmless]
    pressing = next((danger for danger in warning if not danger.undone), warning[0])
    return _warned(_asked(policy, call, judgement, pressing.reason, (*shown, *evidence)), judgement)


def _warned(decision: Decision, judgement: Judgement) -> Decision:
    """The question with the line about what could be lost, if anything."""
    dangers = [danger for danger in judgement.dangers if not danger.harmless]
    if not dangers:
        return decision
    losses = [danger.loss for danger in dangers if danger.loss is not None]
    untold = [danger for danger in dangers if danger.loss is None or not danger.loss.what]
    reasons = list(dict.fromkeys(danger.reason.rstrip(".") for danger in untold or dangers[:1]))
    more = f" and {len(reasons) - _MOST_DANGERS} more" if len(reasons) > _MOST_DANGERS else ""
    return replace(
        decision,
        danger="; ".join(reasons[:_MOST_DANGERS]) + more,
        loss=merged(losses),
        counted=len(losses) == len(dangers),
        told=not untold,
    )


def _asked(policy: Policy, call: Call, judgement: Judgement, reason: str, evidence: tuple[str, ...]) -> Decision:
    offered = offer(policy, call, judgement)
    return Decision(
        "ask",
        reason,
        offers=offered.rules,
        offer_note=offered.note,
        evidence=evidence,
        only_reads=judgement.only_reads_elsewhere,
        git_knows=any(part.git_knows for part in judgement.parts),
        for_now=MODES[policy.mode].accepts_edits and any(part.no_edit for part in judgement.parts),
    )


def _text(part: Part) -> str:
    words = " ".join("…" if word is None else word for word in part.words)
    return f"{words[:200]}: " if words else ""
