"""After words of strangers came into the conversation, the next step out of it asks, even where a rule allows it.

A page can tell the model to send something somewhere. Whether a text does that can't be known, so nothing is looked
for in it: what counts is where it came from, and where the call goes.
"""

from __future__ import annotations

from dataclasses import replace

from swecli.core.permissions.paths import inside
from swecli.core.permissions.types import Call, Decision, Policy


def after_untrusted(policy: Policy, call: Call, decision: Decision, *, proven: bool) -> Decision:
    """The decision, turned into a question where it would let a call out without one. ``proven``: the call is a command
    that is proven to only read inside the workspace."""
    if decision.outcome != "allow" or not policy.untrusted or proven or decision.contained:
        return decision
    where = _way_out(policy, call)
    if not where:
        return decision
    origins = ", ".join(policy.untrusted[:3])
    reason = f"This {where}, and the conversation holds text from {origins}, which may try to give orders."
    return replace(decision, outcome="ask", reason=reason, offer=None)


def _way_out(policy: Policy, call: Call) -> str:
    """Where the call goes beyond the workspace, as a clause; empty where it stays inside, or goes back to the one place
    that the text came from."""
    effects = call.effects
    if effects.command is not None:
        return "runs outside of the sandbox"
    if effects.network is not None and set(policy.untrusted) != {effects.network}:
        return f"connects to {effects.network}"
    for path in (*effects.reads, *effects.writes):
        if inside(path, call.roots) is None:
            return f"goes to {path}, outside the workspace"
    return ""
