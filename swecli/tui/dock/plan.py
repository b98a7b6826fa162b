"""What is to become of a plan that the model has proposed."""

from __future__ import annotations

from collections.abc import Callable

from swecli.core.engine.plan import ProposedPlan
from swecli.core.tools.base import plural
from swecli.tui.dock.choices import Choice, ChoicePanel


class PlanPanel(ChoicePanel):
    """It goes away when the mode changes or a turn begins."""

    def __init__(self, plan: ProposedPlan, done: Callable[[str], None]) -> None:
        """``done`` gets "default", "accept-edits", "edit", "change" or "keep"."""
        size = f" ({plural(len(plan.steps), 'step')})" if plan.steps else ""
        super().__init__(
            f"Carry out this plan?{size}",
            (),
            f"The plan is above{f' and in {plan.path}' if plan.path else ''}. Nothing has been changed yet.",
            (
                ("default", Choice("go ahead", "y", "asks before each change")),
                ("accept-edits", Choice("go ahead and accept edits", "a", "commands still ask")),
                *((("edit", Choice("edit it", "e", "in your editor, then decide")),) if plan.path else ()),
                ("change", Choice("change it", "n", "say what")),
                ("keep", Choice("keep planning", "k", "back to the prompt")),
            ),
            done,
            leave=("keep", "keep planning"),
            calm=True,
        )
