"""Mode, rules and grants of a run, and what keeps the user's approvals."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from swecli.assembly.startup import Startup
from swecli.core.config.trust import GRANTS_FILE, GrantStore, Span, accept_items, file_digest
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Call, Decision, Policy, Rule
from swecli.core.workspace.walk import left_out_by_ripgrep
from swecli.launch import LaunchOptions

Decide = Callable[[Policy, Call], Decision]


def grants_of(startup: Startup, workspace: Path) -> GrantStore:
    return GrantStore(startup.paths.workspace_data(workspace) / GRANTS_FILE)


def grant_rules(store: GrantStore) -> tuple[Rule, ...]:
    return tuple(Rule("allow", grant.rule, "grant", grant.origin) for grant in store.active())


def with_grants(store: GrantStore) -> Decide:
    """``decide`` with the grants valid at each decision: a grant ends when it expires or is revoked."""

    def decided(policy: Policy, call: Call) -> Decision:
        # Only now: all that it knows of commands would be 1 MiB of an idle session.
        from swecli.core.permissions.decide import decide

        return decide(replace(policy, rules=(*policy.rules, *grant_rules(store))), call)

    return decided


def rule_saver(store: GrantStore) -> Callable[[str, Span], str]:
    """Stores a rule beyond the session. Returns a sentence if that failed."""

    def keep(rule: str, span: Span) -> str:
        try:
            store.add(rule, span)
        except OSError as error:
            return f"Could not store {rule} ({error.strerror or error}); only this call was allowed."
        return ""

    return keep


def approved_file_saver(options: LaunchOptions, startup: Startup) -> Callable[[str, str], str]:
    """Approves the content of a project's file as the user's own words. Returns a sentence if that failed."""

    def keep(path: str, sha256: str) -> str:
        if not options.store:
            return ""
        try:
            return accept_items(startup.paths.data, options.cwd, (file_digest(options.cwd, Path(path), sha256),))
        except OSError as error:
            return f"Could not store your approval of {path} ({error}); swecli asks again at the next start."

    return keep


def build_policy(options: LaunchOptions, startup: Startup, environment: Mapping[str, str]) -> Policy:
    """Mode, rules and trust at the start of permission decisions. ``environment`` is that of commands: a command is
    judged by the programs that it would really find."""
    remembers = startup.loaded.settings.memory.enabled and not options.safe_mode
    return Policy(
        mode=startup.loaded.settings.approval.mode,
        rules=policy_rules(options, startup),
        trust=startup.trust.state,
        yolo=options.yolo,
        own_dirs=tuple(str(path) for path in startup.paths.all),
        memory=(str(startup.paths.memories),) if remembers else (),
        home=os.path.realpath(Path.home()),
        facts=OsFacts(environment, left_out_by_ripgrep, startup.loaded.settings.approval.secret_names),
    )


def policy_rules(options: LaunchOptions, startup: Startup) -> tuple[Rule, ...]:
    """The rules from files and flags."""
    rules = [Rule(rule.effect, rule.text, rule.scope, rule.origin) for rule in startup.loaded.rules]
    rules += [Rule("allow", text, "flag", "--allowed-tools") for text in options.allowed_tools]
    rules += [Rule("deny", text, "flag", "--disallowed-tools") for text in options.disallowed_tools]
    return tuple(rules)
