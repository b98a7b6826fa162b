"""What one agent of a session read, said and called, as text."""

from __future__ import annotations

from collections.abc import Iterable

from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ItemStarted, Notice, TurnEnded
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart


def transcript_of(events: Iterable[Event], agent: str) -> str | None:
    """Everything that a subagent read, said and called, with results, in order; None if no such agent exists. Each call
    appears once, in its last form: it is recorded when complete, and again with each change on its way to the tool."""
    parts: list[str] = []
    calls: dict[str, int] = {}
    kinds: dict[str, ItemStarted] = {}
    known = False
    for event in events:
        if event.agent != agent:
            continue
        known = True
        match event.body:
            case ItemStarted(item=item) as started:
                kinds[item] = started
            case ItemCheckpointed(item=item, part=ToolCallPart(name=name, arguments=arguments)):
                at = calls.setdefault(item, len(parts))
                parts[at : at + 1] = [f"[call of {name}]\n{arguments}"]
            case ItemCompleted() as completed:
                parts += _completed(completed, kinds.pop(completed.item, None))
            case Notice(text=text, level="warning" | "error"):
                parts.append(f"[notice]\n{text}")
            case TurnEnded(outcome=outcome, reason=reason):
                parts.append(f"[ended: {outcome}{f', {reason}' if reason else ''}]")
            case _:
                pass
    return "\n\n".join(parts) if known else None


def _completed(completed: ItemCompleted, started: ItemStarted | None) -> list[str]:
    kind = started.kind if started is not None else ""
    texts: list[str] = []
    for part in completed.parts:
        match part:
            case TextPart(text=text) if kind in ("user", "text", "note") and text.strip():
                texts.append(f"[{'task' if kind == 'user' else 'agent' if kind == 'text' else 'note'}]\n{text}")
            case ToolResultPart(name=name):
                texts.append(f"[result of {name}, {completed.status}]\n{part.whole_text}")
            case _:
                pass
    return texts


def agent_transcript(recorder: Recorder, agent: str) -> str | None:
    """Transcript of one subagent; None if there is none with this id. Blocks on the disk."""
    if agent not in recorder.state.agents:
        return None
    return transcript_of(recorder.facts, agent) or "(not started)"
