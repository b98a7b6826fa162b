"""The context and its plans as JSON documents, for scripts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from swecli.core.context_management.compaction.plan import CompactionPlan
from swecli.core.engine.view import SessionPort


def plan_document(plan: CompactionPlan) -> dict[str, Any]:
    """What a compaction would do. Tokens are of the whole request; ids are of ledger entries."""
    return {"type": "compaction_plan", **asdict(plan), "worthwhile": plan.worthwhile}


def context_document(port: SessionPort) -> dict[str, Any]:
    """The figures of ``/context``: the same measure, in tokens."""
    view = port.view
    budget, model = view.budget, view.model
    return {
        "type": "context",
        "session": view.session_id,
        "model": model.ref if model is not None else None,
        "messages": len(view.messages),
        "budget": asdict(budget) if budget is not None else None,
        "share": round(budget.share, 6) if budget is not None else None,
        "rules": [asdict(rule) for rule in port.retention()],
    }
