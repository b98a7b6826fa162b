"""Why a permission is asked for, as it is shown."""

from __future__ import annotations

from swecli.core.protocol.events import PermissionRequested


def grounds(request: PermissionRequested) -> tuple[str, ...]:
    """The reason and what it rests on, as lines: each thing is said once. A change of files that is asked about only
    because it is one has none where the facts tell of it."""
    reason = request.reason
    if request.facts and reason in {f"This would change {path}." for path in request.evidence}:
        return ()
    told = [line for line in request.evidence if line not in reason]
    repeated = [line for line in told if _repeats(line, reason)]
    if len(repeated) == 1:  # several tell which parts of a command the reason is about
        told.remove(repeated[0])
    return tuple(line for line in (reason, *told) if line)


def _repeats(line: str, reason: str) -> bool:
    """Whether a line, "words of a command: why", has no other why than the reason."""
    places = (index for index in range(len(line)) if line.startswith(": ", index))
    return any(f": {line[index + 2 :]}." in reason for index in places)
