"""Grants of a workspace as rules of the permission decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from swecli.assembly.startup import Startup
from swecli.core.config.grants import FILE_NAME, GrantStore, Span
from swecli.core.permissions.types import Call, Decision, Policy, Rule

Decide = Callable[[Policy, Call], Decision]


def grants_of(startup: Startup, workspace: Path) -> GrantStore:
    """The grants of this workspace, by its real path."""
    return GrantStore(startup.paths.workspace_data(workspace) / FILE_NAME)


def grant_rules(store: GrantStore) -> tuple[Rule, ...]:
    """What holds now."""
    return tuple(Rule("allow", grant.rule, "grant", grant.origin) for grant in store.active())


def with_grants(decide: Decide, store: GrantStore) -> Decide:
    """``decide`` under what is granted at the moment of each decision: a grant ends when it expires or is revoked."""

    def decided(policy: Policy, call: Call) -> Decision:
        return decide(replace(policy, rules=(*policy.rules, *grant_rules(store))), call)

    return decided


def keeper(store: GrantStore) -> Callable[[str, Span], str]:
    """Keeps a rule beyond the session. Returns a sentence where it could not be kept."""

    def keep(rule: str, span: Span) -> str:
        try:
            store.add(rule, span)
        except OSError as error:
            return f"{rule} could not be kept ({error.strerror or error}); this call alone was allowed."
        return ""

    return keep
