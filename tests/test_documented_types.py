"""The documented programs, and a program that streams, pass a strict check of types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STREAMING = """
import asyncio

from swecli import Agent, AgentOptions
from swecli.events import Event, ItemDelta, TextPart, TurnEnded


def shown(event: Event) -> str:
    match event.body:
        case ItemDelta(text=text):
            return text
        case TurnEnded(outcome=outcome):
            return outcome
        case _:
            return ""


async def main() -> None:
    async with Agent(AgentOptions(model="openai/gpt-5")) as agent:
        async for event in agent.stream("hi"):
            print(shown(event))
            body = event.body
            if body.type == "item_delta":
                print(body.text, body.channel)
            elif body.type == "item_completed":
                print([part.text for part in body.parts if isinstance(part, TextPart)])
            elif body.type == "turn_ended":
                print(body.outcome, body.reason)


asyncio.run(main())
"""


def programs() -> dict[str, str]:
    text = (ROOT / "docs" / "library.md").read_text()
    blocks = [piece.partition("```")[0] for piece in text.split("```python\n")[1:]]
    return {**{f"documented_{number}.py": block for number, block in enumerate(blocks)}, "streaming.py": STREAMING}


def test_documented_programs_are_typed(tmp_path: Path) -> None:
    for name, text in programs().items():
        (tmp_path / name).write_text(text)
    strict = {"typeCheckingMode": "strict", "include": ["."], "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(strict))
    checked = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    problems = json.loads(checked.stdout)["generalDiagnostics"]
    assert [f"{Path(one['file']).name}: {one['message']}" for one in problems if one["severity"] == "error"] == []
    assert json.loads(checked.stdout)["summary"]["filesAnalyzed"] == len(programs())
