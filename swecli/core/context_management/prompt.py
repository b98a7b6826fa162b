"""The request to the model, most stable part first: system prompt and tools, then the conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from hashlib import sha256
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.budget import Limits, Window, clamp_output, window_of
from swecli.core.context_management.instructions import ESTIMATED, SHARE, Instructions
from swecli.core.context_management.prompts import profile_for, system_prompt
from swecli.core.llm.json_values import compact
from swecli.core.llm.types import ModelInfo, ModelRequest, Profile, SystemBlock, ToolSchema
from swecli.core.protocol.budget import (
    MEMORY,
    PLAYBOOK,
    PROJECT_INSTRUCTIONS,
    SKILLS,
    SYSTEM,
    USER_INSTRUCTIONS,
)
from swecli.core.protocol.context_events import PromptPart
from swecli.core.protocol.messages import Message

BASE = "base"
APPENDED = "appended"
TOOL_NOTES = "tool notes"

_ORDER = (BASE, TOOL_NOTES, USER_INSTRUCTIONS, PROJECT_INSTRUCTIONS, MEMORY, PLAYBOOK, SKILLS)
_GROUPS = (
    (BASE, TOOL_NOTES, USER_INSTRUCTIONS),  # the same in all projects of one user
    (PROJECT_INSTRUCTIONS,),  # the same in all sessions of one project
)
"""A breakpoint follows each group, and the sections after them."""


class PromptSection(Struct, frozen=True):
    """One section. ``name`` is one of this module's or of ``components``; other names come last."""

    name: str
    content: str


class Prompt(Struct, frozen=True):
    """A built system prompt. ``components`` maps each block's text to its component; ``sources`` are the files behind
    its sections."""

    system: tuple[SystemBlock, ...]
    components: Mapping[str, str]
    sections: tuple[PromptSection, ...] = ()
    sources: tuple[PromptPart, ...] = ()


def build_prompt(sections: Iterable[PromptSection]) -> Prompt:
    """Equal sections give equal bytes, whatever their order; those of one name keep theirs, empty ones are left out. At
    most three blocks end with a cache breakpoint."""
    return prompt_of(sorted((section for section in sections if section.content.strip()), key=_rank))


def prompt_of(stable: Sequence[PromptSection]) -> Prompt:
    """The prompt with these sections in this order."""
    blocks: list[SystemBlock] = []
    for section, following in zip_longest(stable, stable[1:]):
        ends_group = following is None or _group(following) != _group(section)
        blocks.append(SystemBlock(section.content, breakpoint=ends_group))
    return Prompt(tuple(blocks), {section.content: _component(section) for section in stable}, tuple(stable))


def _rank(section: PromptSection) -> tuple[int, str]:
    """Place of a section; unknown names are sorted, so that the order of adding can't change the bytes."""
    known = section.name in _ORDER
    return (_ORDER.index(section.name), "") if known else (len(_ORDER), section.name)


def _group(section: PromptSection) -> int:
    return next((number for number, names in enumerate(_GROUPS) if section.name in names), len(_GROUPS))


def _component(section: PromptSection) -> str:
    return SYSTEM if section.name in (BASE, TOOL_NOTES) else section.name


class MemoryText(Struct, frozen=True):
    """Memories in the prompt, for a usual window and for a small one; empty without any. ``sources`` are the files
    behind them, except swecli's own notes."""

    text: str = ""
    lean: str = ""
    sources: tuple[PromptPart, ...] = ()


class PromptTexts(Struct, frozen=True):
    """Additions to the system prompt. ``base`` replaces swecli's own text; None keeps it. ``headless`` tells the model
    that the run is unattended."""

    base: str | None = None
    append: str = ""
    files: Instructions = Instructions()
    """Instructions of the project, and the user's own for all projects; cut to what the window has room for."""
    memory: MemoryText = MemoryText()
    """Memories of earlier sessions."""
    headless: bool = False
    playbook: str = ""
    """The proven bullets, the same for the whole session."""
    skills: Callable[[int], str] = lambda window: ""
    """Names and descriptions of skills, for a context window of so many tokens."""
    sources: tuple[PromptPart, ...] = ()
    """The files behind these texts: names, digests and components."""


class EarlierPrompt(Struct, frozen=True):
    """The prompt of an earlier run, and what it was made for: the window in tokens, and ``tools_digest``."""

    prompt: Prompt
    window: int
    tools: str


def digest_of(text: str) -> str:
    """Identifies a text of a request's beginning."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def tools_digest(tools: Iterable[ToolSchema]) -> str:
    """Identifies the tools that a session begins with."""
    return digest_of(compact([[tool.name, tool.description, tool.parameters] for tool in tools]))


class SystemPrompt:
    """Prompt and tools by model: equal bytes for the whole session, so that providers can cache them. A model with
    a smaller profile sees its ``small_tools`` in place of ``tools``; a model named in ``special_tools`` sees those in
    addition."""

    def __init__(
        self,
        tools: Sequence[ToolSchema],
        small_tools: Mapping[Profile, Sequence[ToolSchema]],
        special_tools: Callable[[str], Sequence[ToolSchema]],
        texts: PromptTexts,
        limits: Limits,
    ) -> None:
        self._tools = tuple(tools)
        self._small_tools = small_tools
        self._special_tools = special_tools
        self._texts = texts
        self.memory = texts.memory
        """Constant after the first request."""
        self.limits = limits
        self._prompts: dict[tuple[str, str, str, str], Prompt] = {}
        self._fitted = (-1, Instructions())
        """The instruction files for a room in tokens."""
        self._earlier: Mapping[str, EarlierPrompt] = {}
        """The prompts of an earlier run, by model (``provider/name``)."""
        self._fits: dict[str, bool] = {}
        """Whether they were made for the tools of this run."""

    def adopt_tools(self, tools: Sequence[ToolSchema], small_tools: Mapping[Profile, Sequence[ToolSchema]]) -> None:
        """Replace the initial tools. Only before the first request."""
        self._tools, self._small_tools = tuple(tools), small_tools
        self._fits.clear()

    def adopt_prompts(self, earlier: Mapping[str, EarlierPrompt]) -> None:
        """Use these prompts of an earlier run as they were sent. Only before the first request."""
        self._earlier = earlier

    def earlier(self, info: ModelInfo) -> Prompt | None:
        """The prompt of an earlier run, if it was made for this window and these tools: without them nothing is kept,
        and a prompt speaks of its tools."""
        earlier = self._earlier.get(info.ref)
        if earlier is None or earlier.window != window_of(info, self.limits).total:
            return None
        if info.ref not in self._fits:
            self._fits[info.ref] = tools_digest(self.tools(info)) == earlier.tools
        return earlier.prompt if self._fits[info.ref] else None

    def tools(self, info: ModelInfo) -> tuple[ToolSchema, ...]:
        """The tools, including those for this model only, sorted into place by name."""
        profile = profile_of(info, self.limits)
        if profile != "full":
            return tuple(self._small_tools.get(profile, self._tools))
        special = self._special_tools(info.name)
        return tuple(sorted((*self._tools, *special), key=lambda tool: tool.name)) if special else self._tools

    def prompt(self, info: ModelInfo) -> Prompt:
        """Built once per model, and again only if its window turns out to be another one. A resumed session's is that
        of the earlier run, as it was sent."""
        if self._earlier and (earlier := self.earlier(info)) is not None:
            return earlier
        texts, window = self._texts, window_of(info, self.limits)
        files = self._files(info)
        own, project = files.render_own(), files.render_project()
        profile = profile_of(info, self.limits)
        base = texts.base if texts.base is not None else system_prompt(profile)
        key = (info.ref, base, own, project)
        prompt = self._prompts.get(key)
        if prompt is None:
            sections = [
                PromptSection(BASE, base),
                PromptSection(APPENDED, texts.append),
                PromptSection(USER_INSTRUCTIONS, own),
                PromptSection(PROJECT_INSTRUCTIONS, project),
                PromptSection(MEMORY, self.memory.text if profile == "full" else self.memory.lean),
                PromptSection(PLAYBOOK, texts.playbook),
                PromptSection(SKILLS, texts.skills(window.total)),
            ]
            prompt = self._prompts[key] = replace(build_prompt(sections), sources=texts.sources)
        return prompt

    def _files(self, info: ModelInfo) -> Instructions:
        """The instruction files as far as the window has room for them."""
        room = room_for_instructions(window_of(info, self.limits))
        if self._fitted[0] != room:
            self._fitted = (room, self._texts.files.within(room))
        return self._fitted[1]

    def cut_instructions(self, info: ModelInfo) -> tuple[str, ...]:
        """A sentence for the user about each instruction file that is not whole in this model's prompt."""
        return self._files(info).notices if self.earlier(info) is None else ()


def profile_of(info: ModelInfo, limits: Limits) -> Profile:
    """The size of prompt and tools for a model."""
    return profile_for(window_of(info, limits).total, info.profile)


def room_for_instructions(window: Window) -> int:
    """Most estimated tokens of instructions in the prompt."""
    return max(0, int(SHARE * ESTIMATED * window.effective))


def environment_note(*, today: date, cwd: str, platform: str, shell: str, git: bool) -> str:
    """Equal values give equal bytes. Line breaks in names are shown as ``?``."""
    lines = (
        f"Date: {today.isoformat()}",
        f"Working directory: {_line(cwd)}",
        f"Platform: {_line(platform)}",
        f"Shell: {_line(shell)}" if shell else "",
        f"Git work tree: {'yes' if git else 'no'}",
    )
    return "\n".join(["<environment>", *(line for line in lines if line), "</environment>"])


def _line(value: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in value)


MAX_BREAKPOINTS = 4
"""Most breakpoints of one request; more is an error at Anthropic, the only kind of provider that wants them marked."""

MESSAGE_BREAKPOINTS = 3
LOOKBACK = 20
"""Blocks before a breakpoint that Anthropic searches for a cached prefix."""


def build_request(
    prompt: Prompt,
    tools: Iterable[ToolSchema],
    messages: Sequence[Message],
    *,
    info: ModelInfo,
    limits: Limits,
    session: str,
    effort: str | None = None,
    watermarks: Sequence[int] = (),
    added_tools: Sequence[ToolSchema] = (),
) -> ModelRequest:
    """One request. Request k is a prefix of request k + 1 as long as the caller's values only grow at the end.

    ``watermarks`` are indexes of the last cleared message, and of the last one before the newest clearing if that has
    just happened, in this order: the next clearing leaves everything up to there unchanged. ``added_tools`` follow the
    others in their own order, so that one more changes nothing before it.
    """
    marks = message_breakpoints(messages, *watermarks)
    return ModelRequest(
        system=_limited(prompt.system, MAX_BREAKPOINTS - len(marks)),
        tools=(*sorted(tools, key=lambda tool: tool.name), *added_tools),
        messages=tuple(messages),
        breakpoints=marks,
        max_output_tokens=clamp_output(info, limits, 0),
        effort=effort,
        session=session,
        server_clearing=limits.server_clearing,
    )


def message_breakpoints(messages: Sequence[Message], *watermarks: int) -> tuple[int, ...]:
    """Cache breakpoints of the conversation: indexes in rising order, at most three.

    By priority: the last message; the last message of the previous request, if an answer and its results have more
    blocks than a provider searches; the watermarks of clearing; the end of the previous turn.
    """
    last, before = len(messages) - 1, dict[str, int]()
    for index in range(last, -1, -1):  # the message before the newest one of each role
        if not messages[index].note:
            before.setdefault(messages[index].role, index - 1)
        if "assistant" in before and "user" in before:
            break
    previous, turn_end = before.get("assistant"), before.get("user")
    far = previous is not None and sum(len(message.parts) for message in messages[previous + 1 :]) >= LOOKBACK
    wanted = (last, previous if far else None, *watermarks, turn_end, previous)
    chosen: list[int] = []
    for index in wanted:
        if index is not None and 0 <= index <= last and index not in chosen:
            chosen.append(index)
    return tuple(sorted(chosen[:MESSAGE_BREAKPOINTS]))


def _limited(system: tuple[SystemBlock, ...], most: int) -> tuple[SystemBlock, ...]:
    """Keep at most this many breakpoints: the last first, because it covers the whole prompt, then those from the
    beginning, which other projects share."""
    marked = [index for index, block in enumerate(system) if block.breakpoint]
    chosen = {*marked[-1:], *marked[: max(0, most - 1)]}
    return tuple(
        block if not block.breakpoint or index in chosen else replace(block, breakpoint=False)
        for index, block in enumerate(system)
    )
