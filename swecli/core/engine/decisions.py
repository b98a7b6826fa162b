"""Decisions on calls under the session's current mode, rules and sandbox."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from swecli.core.engine.prepared_call import PreparedCall
from swecli.core.engine.services import Permissions, Workspace
from swecli.core.engine.settings import Settings
from swecli.core.engine.state import SessionState
from swecli.core.permissions.rules import ReadRules, read_rules
from swecli.core.permissions.types import Call, Decision, Policy, Rule, restores_nothing
from swecli.core.protocol.events import Mode

ASKED_BY_HOOK = "Can't be allowed in general: a hook asks about this."


class Decisions:
    """The policy of one session as it is when a call is decided on."""

    def __init__(self, permissions: Permissions, workspace: Workspace, settings: Settings, state: SessionState) -> None:
        self._permissions = permissions
        self._workspace = workspace
        self._settings = settings
        self._state = state

    def decide(self, call: PreparedCall, mode: Mode | None = None, *, counted: bool = False) -> Decision:
        """The permission decision under the current rules and mode, or under another mode. Starts git only if
        ``counted``."""
        cwd = str(self._workspace.cwd)
        decision = self._permissions.decide(
            self._policy(mode, call.rules, counted=counted),
            Call(call.tool.name, call.params.values(), call.effects, cwd, self._roots, call.typed),
        )
        if call.must_ask and decision.outcome == "allow":
            return replace(decision, outcome="ask", reason=call.must_ask, offers=(), offer_note=ASKED_BY_HOOK)
        return decision

    @property
    def own_names(self) -> tuple[str, ...]:
        """As ``own_names`` of a ``ToolContext``."""
        return self._permissions.policy.facts.own_names

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders whose files are no untrusted text."""
        return (*self._workspace.roots, *map(Path, self._permissions.readable()))

    def read_rules(self) -> ReadRules:
        """The current rules about files whose text may not be read."""
        permissions = self._permissions
        now = permissions.inherited(replace(permissions.policy, mode=self._state.mode, rules=self._rules()))
        return read_rules(now, self._roots)

    def _rules(self, more: tuple[Rule, ...] = ()) -> tuple[Rule, ...]:
        return (*self._permissions.rules(self._settings.now), *self._state.rules, *more)

    @property
    def _roots(self) -> tuple[str, ...]:
        return tuple(str(root) for root in self._workspace.roots)

    def _policy(self, mode: Mode | None = None, more: tuple[Rule, ...] = (), *, counted: bool = False) -> Policy:
        """The current policy, with ``more`` rules or another mode if given."""
        permissions, state = self._permissions, self._state
        policy, sandbox, checkpoints = permissions.policy, self._workspace.sandbox.state, self._workspace.checkpoints
        now = replace(
            policy,
            mode=mode or state.mode,
            facts=policy.facts if counted else policy.facts.without_programs(),
            rules=self._rules(more),
            sandbox=sandbox.level,
            holds=sandbox.holds,
            masks=sandbox.masks,
            untrusted=state.untrusted,
            restores=checkpoints.restores if checkpoints is not None else restores_nothing,
            readable=permissions.readable(),
        )
        return permissions.inherited(now)
