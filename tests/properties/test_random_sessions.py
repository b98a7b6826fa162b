"""Whatever happens in a session: it never overflows, loses nothing, keeps its prefix, and can be taken back.

``SWECLI_EXAMPLES`` is how many sessions are tried; ``make soak`` tries many, again and again.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings

from tests.properties.random_sessions import Do, Plan, Say, plans, run

EXAMPLES = int(os.environ.get("SWECLI_EXAMPLES", "12"))


@settings(deadline=None, max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(plans)
def test_random_sessions(plan: Plan) -> None:
    run(plan)


def test_a_session_that_fills_its_window_several_times() -> None:
    reads = tuple((("read_file", 3_000), ("run_command", 400)) for _ in range(12))
    # Words of the user can't be cleared, so that a summary has to be asked for.
    actions = (
        *(Say(words, reads) for words in (30, 5_000, 5_000)),
        Do("rewind"),
        *(Say(words, reads) for words in (5_000, 5_000, 5_000, 200)),
        Do("undo"),
        Do("redo"),
        Say(1, reads),
    )
    model = run(Plan(32_000, 1.2, actions, ("good", "empty", "error", "long")))
    assert model.summaries >= 1
    assert len(model.requests) > 40
