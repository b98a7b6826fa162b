"""A message that does not fit goes back to the user: no later request carries it."""

from __future__ import annotations

from pathlib import Path

from swecli.core.protocol.events import Rewound, TurnEnded
from swecli.core.tools.registry import builtin_tools
from tests.core.engine.support import bench

SMALL = "window = 8000\nmax_output = 500\n"
TOO_LONG = " ".join(f"word{number}" for number in range(9_000))


async def test_a_message_that_is_blocked_leaves_the_conversation(tmp_path: Path) -> None:
    async with bench(SMALL + '[[step]]\ntext = "Hello."\n' * 2, tmp_path) as b:
        await b.say("hello")
        end = await b.say(TOO_LONG)
        assert end.outcome == "blocked"
        (rewound,) = b.bodies(Rewound)
        assert rewound.text == TOO_LONG
        bodies = [event.body for event in b.events]
        assert bodies.index(rewound) < bodies.index(end)
        assert [message.text for message in b.session.view.messages][1:] == ["Hello."]
        assert (await b.say("and now?")).outcome == "done"
        assert all("word8999" not in message.text for message in b.model.requests[-1].messages)
        budget = b.session.view.budget
        assert budget is not None
        assert budget.level == "ok"


async def test_what_it_attached_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a line of the file\n" * 40)
    async with bench(SMALL + '[[step]]\ntext = "Hello."\n', tmp_path, tools=builtin_tools()) as b:
        end = await b.say(f"@a.txt {TOO_LONG}")
        assert end.outcome == "blocked"
        assert not b.session.view.messages


async def test_a_turn_that_is_blocked_after_an_answer_keeps_its_message(tmp_path: Path) -> None:
    script = SMALL + '[[step]]\ncall = [{ tool = "read_file", arguments = { target = "x" } }]\n'
    script += '[[step]]\nfault = { kind = "overflow", tokens = 40000, window = 300 }\n' * 9
    async with bench(script, tmp_path) as b:
        end = await b.say("go on")
        assert end.outcome == "blocked", end
        assert not b.bodies(Rewound)
        assert b.session.view.messages[0].text.endswith("go on")
        assert isinstance(end, TurnEnded)
