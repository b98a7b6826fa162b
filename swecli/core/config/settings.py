"""Settings: every section and key that has an effect, with its default and allowed values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from swecli.core.config.key_actions import ACTIONS, normal, problem
from swecli.core.protocol.context_events import RotKind
from swecli.core.protocol.events import Mode
from swecli.core.secret_names import check_pattern
from swecli.core.validation import Checked, check, fields_of
from swecli.lazy_pattern import lazy_pattern

_WORD = lazy_pattern(r"[A-Za-z0-9_.-]+")


def word(value: str) -> str:
    """``value`` if it is one word; raises ``ValueError`` otherwise."""
    if not _WORD.fullmatch(value):
        raise ValueError("must be one word")
    return value


Word = Annotated[str, check(word)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Tokens = Annotated[int, Meta(ge=1_000)]
Count = Annotated[int, Meta(ge=1)]


class Section(Checked):
    """Base of all sections. Values are not coerced: "10" is not a number, true is not a count."""


class CheckpointSettings(Section):
    """Copies of files for /undo."""

    enabled: bool = True
    """false: nothing is recorded, so /undo can't restore anything."""
    max_file_bytes: Count = 2_000_000
    """Largest file, in bytes, copied because a command might change it. Edited files are always copied."""
    max_total_bytes: Count = 500_000_000
    """All copies of one workspace together, in bytes, compressed. Changes of the oldest sessions are deleted first."""
    max_files: Count = 100_000
    """Files and folders of a tree that are examined around a command."""
    keep_days: Count = 30
    """Days after its last change for which a session's changes can be undone."""


class LogSettings(Section):
    """Session logs in .swecli/logs of a trusted folder."""

    enabled: bool = True
    """false: no logs are written; swecli logs export still works."""
    max_bytes: Annotated[int, Meta(ge=10_000)] = 5_000_000
    """A log that reaches this many bytes is rotated; three older ones are kept."""


class SessionSettings(Section):
    """Automatic deletion of stored sessions. Without a rule, sessions are kept."""

    delete_after_days: Count | None = None
    """Delete sessions unused for this many days, with their results, file changes and logs."""
    max_total_bytes: Count | None = None
    """All sessions of one workspace together, in bytes. The least recently used are deleted first."""
    protect_days: Count = 30
    """Days after its last use for which no rule deletes a session."""


Strategy = Literal["chain", "truncation", "importance", "summarization"]
Score = Annotated[float, Meta(ge=0, le=1)]
Pattern = Annotated[str, Meta(min_length=1)]

RETENTION_ACTIONS = ("keep_turns", "keep_last", "until_file_changes", "head_tail", "offload_over", "never_drop")


class RetentionSettings(Section):
    """One rule about results in the context: which ones (patterns with ``*`` and ``?``, all must match) and exactly one
    action. The first matching rule decides."""

    tool: Pattern = "*"
    """Name of the tool."""
    kind: Literal["result", "arguments"] = "result"
    """``arguments``: the text that the model wrote into finished edits."""
    path: Pattern = "*"
    """Path or command of the call."""
    keep_turns: Count | None = None
    """Remove it after this many turns."""
    keep_last: Count | None = None
    """Keep only this many of the newest."""
    until_file_changes: bool = False
    """Remove it when the file that it shows changes."""
    head_tail: Count | None = None
    """Shorten it to this many tokens, half from the beginning and half from the end."""
    offload_over: Count | None = None
    """Replace it with a reference if it is longer than this many tokens."""
    never_drop: bool = False
    """Keep it verbatim in every compaction, including summaries and cuts of the oldest messages."""

    def __str__(self) -> str:
        """The rule in words; also its name in reports of what it removed."""
        about = [text for text in (self.tool, self.path) if text != "*"]
        about += [self.kind] if self.kind != "result" else []
        name = next((name for name in RETENTION_ACTIONS if getattr(self, name)), "")
        value = getattr(self, name, None)
        return f"{' '.join(about) or 'everything'}: {name}{'' if value is True else f' {value}'}"

    def problem(self) -> str:
        given = [name for name in RETENTION_ACTIONS if getattr(self, name)]
        if len(given) != 1:
            actual = f"not {' and '.join(given)}" if given else "it has none"
            return f"must have exactly one of {', '.join(RETENTION_ACTIONS)}: {actual}"
        if self.kind == "arguments" and given[0] in ("until_file_changes", "head_tail"):
            return f"must not have {given[0]}: it applies to results, and this rule to arguments"
        return ""


Amount = Count | Share
"""A share of the effective window with a decimal point (0.1), or tokens without one."""


class ContextLimitSettings(Section):
    """Limits for parts of the context: a share of the effective window (0.1) or tokens (4000). Fixed parts above their
    limit are reported; results above theirs are stored and read in parts."""

    system: Amount | None = None
    """swecli's own prompt."""
    instructions: Amount | None = None
    """Instruction files, the project's and your own."""
    tools: Amount | None = None
    """Descriptions of all tools."""
    tool_results: Amount | None = None
    """All results together."""
    tool_result: Amount | None = None
    """Each result."""


class ServerClearingSettings(Section):
    """Anthropic's own clearing of old tool results (context editing), on its servers. Other providers do not offer
    it."""

    enabled: bool = False
    """Whether requests ask for it."""
    trigger_tokens: Tokens = 100_000
    """Tokens of a prompt at which the provider clears."""
    keep_tool_uses: Count = 3
    """Newest calls whose results are kept."""
    exclude_tools: tuple[str, ...] = ()
    """Tools whose results are kept."""


class ContextSettings(Section):
    """How the context is kept within its window. The section agent has the compaction and block thresholds."""

    auto_compact: bool = True
    """false: swecli compacts and clears only when you ask for it."""
    strategy: Strategy = "chain"
    """How to compact: chain clears old results, then summarises, then cuts; truncation drops the oldest messages and
    importance those with the lowest scores, both without a model; summarization writes a summary at once."""
    warn: Share = 0.80
    """Share of the effective window at which swecli warns you and the model."""
    target_tokens: Tokens | None = None
    """Tokens of a request at which swecli compacts in any case; unset: only the share counts."""
    keep_recent: Count = 10
    """Newest messages that are kept verbatim if they fit."""
    keep_recent_tokens: Count | None = None
    """Tokens of the newest messages that are kept verbatim; unset: depends on the window."""
    max_summary_tokens: Count | None = None
    """Longest summary in tokens; unset: depends on the window."""
    user_message_score: Score = 1.0
    """Strategy importance: score of a user message."""
    assistant_message_score: Score = 0.6
    """Strategy importance: score of an answer; a short one scores two fifths of it."""
    tool_use_score: Score = 1.0
    """Strategy importance: score of a message with tool calls."""
    min_score_threshold: Score = 0.3
    """Strategy importance: older messages below this score are dropped."""
    retrieval: bool = True
    """Whether your message comes with pointers to the files that it names or concerns, from an index of the folder."""
    retrieval_model: bool = False
    """Whether the small model (model.small) suggests further search words for your message."""
    sentinel: bool = True
    """Whether swecli suggests remedies at the end of a turn if the conversation has degraded."""
    sentinel_silenced: tuple[RotKind, ...] = ()
    """Suggestions that are never made: contradiction, reverted, failing, reread, stale, summaries, repeated."""
    retention: tuple[RetentionSettings, ...] = ()
    """Rules about what is removed first and what is kept, in order."""
    limits: ContextLimitSettings = ContextLimitSettings()
    """Limits for parts of the context; unset: no limit."""
    server_clearing: ServerClearingSettings = ServerClearingSettings()
    """Anthropic's own clearing of old tool results, on its servers."""
    provider_summary: bool = False
    """Whether the provider writes the summaries of compactions: Anthropic's you can read and undo, but not edit, and
    kept turns keep their thoughts; OpenAI's you can only undo."""


Protocol = Literal["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat"]

_MODEL = lazy_pattern(r"[^/\s]+/\S(?:[\S ]*\S)?")
_REFERENCE = lazy_pattern(r"[A-Za-z0-9_.-]+|[^/\s]+/\S(?:[\S ]*\S)?")
_VARIABLE = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_DOMAIN = lazy_pattern(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+(/[^\s]*)?")
_HEADER = lazy_pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _model(value: str) -> str:
    if not _MODEL.fullmatch(value):
        raise ValueError('must be "provider/model", for example "anthropic/claude-sonnet-5-5"')
    return value


def _reference(value: str) -> str:
    if not _REFERENCE.fullmatch(value):
        raise ValueError('must be "provider/model" or an alias, for example "anthropic/claude-sonnet-5-5"')
    return value


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise ValueError("must be the name of an environment variable, never the key itself")
    return value


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+\S*", value):
        raise ValueError("must be an address that starts with http:// or https://")
    return value


def _header_names(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _HEADER.fullmatch(name) or not text.isprintable():
            raise ValueError("must be header names with single-line text values")
    return value


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Usual words for the reasoning effort; no host takes each of them, and some have others."""
_EFFORT = lazy_pattern(r"[a-z][a-z0-9._-]{0,31}")


def _effort(value: str) -> str:
    if not _EFFORT.fullmatch(value):
        raise ValueError(f"must be one word in lower case, such as {', '.join(EFFORTS)}")
    return value


Effort = Annotated[str, check(_effort)]
"""Reasoning effort. Which words a model takes is checked when it is chosen."""
Model = Annotated[str, check(_model)]
"""``provider/model``."""
Reference = Annotated[str, check(_reference)]
"""``provider/model``, an alias, or one of the roles main, summary and small."""


class ModelSettings(Section):
    """Models by role, and time limits for their answers."""

    name: Reference | None = None
    """Main model, which answers your messages."""
    summary: Reference | None = None
    """Model that writes compaction summaries; unset: the main model."""
    small: Reference | None = None
    """Model for side questions; unset: the main model."""
    fallback: tuple[Reference, ...] = ()
    """Models tried, in this order, while the main model is overloaded or out of quota."""
    effort: Effort | None = None
    """Reasoning effort of the main model, as the provider names it (low, high, …); unset: the provider's default."""
    reasoning: Literal["shown", "hidden"] = "shown"
    """Whether providers are asked for readable reasoning. Hidden reasoning costs the same."""
    cache_ttl: Literal["auto", "5m", "30m", "1h", "12h"] = "auto"
    """Lifetime of the prompt in the provider's cache, where it can be chosen; auto: by your pauses and prices."""
    first_token_timeout: Seconds | None = None
    """Seconds to wait for the first token; unset: 10 minutes, an hour for a local server."""
    stall_timeout: Seconds = 120.0
    """Seconds to wait for the next token of an answer."""


Dollars = Annotated[float, Meta(ge=0, le=100_000)]
"""US dollars per million tokens."""


class PriceSettings(Section):
    """Price of a model. An unset cache rate equals the input rate."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class CapabilitySettings(Section):
    """What a model can do, where that differs from swecli's table (``swecli models NAME``)."""

    binding: bool | None = None
    """Its thoughts are valid only behind the unchanged conversation."""
    display: bool | None = None
    """It shows its thoughts only if asked."""
    adaptive_thinking: bool | None = None
    """It is asked to think as it finds useful, also without an effort."""
    system_messages: bool | None = None
    """It reads system messages within the conversation."""
    clear_at: bool | None = None
    """It reads system messages for one step only."""
    tool_changes: bool | None = None
    """It reads changes of its tools within the conversation."""
    effort_changes: bool | None = None
    """It reads changes of its effort within the conversation."""
    cache_ttl: tuple[Word, ...] | None = None
    """Selectable lifetimes of its prompt cache, the default first."""
    diagnosis: bool | None = None
    """Its server says why a prompt missed the cache."""
    server_compaction: bool | None = None
    """Its server can summarise the conversation."""
    configuration_update: bool | None = None
    """It reads configuration_update items."""
    prompt_cache_options: bool | None = None
    """It reads prompt_cache_options."""
    web_search: bool | None = None
    """Its server can search the web."""
    output_format: bool | None = None
    """It answers in the format of a JSON schema."""
    documents: bool | None = None
    """It reads PDF files."""
    efforts: tuple[Effort, ...] | None = None
    """Words for its reasoning effort; empty: it has none."""


class ModelsSettings(Section):
    """Details of single models."""

    aliases: dict[Word, Model] = {}
    """Short names for models."""
    effort: dict[Model, Effort] = {}
    """Reasoning effort of single models; overrides model.effort."""
    window: dict[Model, Tokens] = {}
    """Context windows of single models in tokens; override every other source."""
    price: dict[Model, PriceSettings] = {}
    """Prices of single models in US dollars per million tokens; override the catalogue, but not costs that a provider
    reports."""
    profile: dict[Model, Literal["auto", "full", "lean", "minimal"]] = {}
    """Size of the system prompt and the tools of single models; auto: lean up to a window of 16,384 tokens, minimal up
    to 4,096."""
    warm: Literal["auto", "hosted", "off"] = "auto"
    """Evaluating the prompt while you read and type; auto: on servers of this machine, and those with a price of 0;
    hosted: at a price also by providers with a call for it (OpenAI, from gpt-5.6 on)."""
    capabilities: dict[Model, CapabilitySettings] = {}
    """What single models can do; overrides swecli's table."""


class DialectSettings(Section):
    """How a server deviates from its protocol. Unset: as usual for servers of its kind."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    system_role: Literal["system", "developer", "user"] | None = None
    include_usage: bool | None = None
    reasoning_field: Word | None = None
    echo_reasoning: Literal["must", "may", "never"] | None = None
    effort: (
        Literal[
            "none",
            "reasoning_effort",
            "reasoning",
            "thinking",
            "enable_thinking",
            "output_config",
            "budget",
            "level",
            "think",
        ]
        | None
    ) = None
    prompt_cache_key: bool | None = None
    cache_control: bool | None = None
    session_header: Word | None = None
    tool_ids: Literal["any", "alnum9", "token40", "token64"] | None = None
    tool_result_name: bool | None = None
    assistant_after_tool: bool | None = None
    merge_roles: bool | None = None
    think_tags: Literal["keep", "split", "opened"] | None = None
    tool_calls: Literal["native", "auto", "text"] | None = None
    body: dict[str, Any] | None = None
    """Extra fields of every request."""

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in fields_of(self) if value is not None}


class ProviderSettings(Section):
    """A provider under a name of your choice."""

    protocol: Protocol | None = None
    """Protocol that the server speaks."""
    base_url: Annotated[str, check(_url)] | None = None
    """Base URL of its API."""
    api_key_env: Annotated[str, check(_variable)] | None = None
    """Environment variable that holds the key; never the key itself."""
    headers: Annotated[dict[str, str], check(_header_names)] = {}
    """Headers of every request."""
    window: Tokens | None = None
    """Context window of its models in tokens, if the server does not report it."""
    max_output: Count | None = None
    """Longest answer of its models in tokens."""
    dialect: DialectSettings = DialectSettings()
    """How the server deviates from its protocol."""


def _place(value: str) -> str:
    if "\0" in value or not value.startswith(("/", "~/")):
        raise ValueError("must be an absolute path, or start with ~/")
    return value


Place = Annotated[str, check(_place)]


class SandboxSettings(Section):
    """Which commands are sandboxed, and what they can reach."""

    mode: Literal["auto", "on", "off"] = "auto"
    """"auto": commands that auto mode runs without approval; "on": every command; "off": none."""
    required: bool = False
    """Whether swecli starts only with a full sandbox."""
    network: bool = False
    """Whether sandboxed commands reach the network; the sandbox is then only partial."""
    unix_sockets: bool = False
    """Whether sandboxed commands may open Unix sockets; the sandbox is then only partial."""
    writable: tuple[Place, ...] = ()
    """Paths outside the workspace that commands may write."""
    hide: tuple[Place, ...] = ()
    """Paths hidden from commands, in addition to the usual ones for keys and passwords."""
    ask_outside: bool = True
    """Whether swecli asks at once to run a command unsandboxed that the sandbox blocked."""


Notify = Literal["auto", "bell", "osc9", "osc777", "off"]
Density = Literal["short", "usual", "full"]
DiffForm = Literal["auto", "unified", "split"]
Progress = Literal["auto", "on", "off"]
Glyphs = Literal["auto", "unicode", "ascii"]
Editing = Literal["usual", "vim"]


class UiSettings(Section):
    """Terminal interface."""

    theme: Word = "auto"
    """Name of a theme; "auto" follows the terminal."""
    reduced_motion: bool = False
    """Whether animation is off: no spinner, and elapsed time updates once a second."""
    glyphs: Glyphs = "auto"
    """Signs and bars: unicode, or ascii for fonts that lack them; auto decides by TERM and the locale."""
    density: Density = "usual"
    """Initial level of detail; Ctrl+O switches it."""
    diff: DiffForm = "auto"
    """split shows old and new text side by side, unified one below the other; auto splits from 160 columns on."""
    editing: Editing = "usual"
    """Keys of the prompt: like a shell, or vim's insert and normal modes."""
    large_message: Share = 0.25
    """Share of the window above which swecli asks before it sends a message with pastes or images."""
    forecast: bool = True
    """Whether swecli shows size and price of the next request while you type."""
    notify: Notify = "auto"
    """How to notify you in a background terminal when a turn ends or needs an answer; auto uses the terminal's
    notifications if known, otherwise the bell."""
    mouse: bool = True
    """Whether swecli handles the mouse (wheel, selection); if not, the terminal selects text itself. Alt+M switches
    it."""
    title: bool = True
    """Whether the terminal's title shows the folder and the state of the turn."""
    progress: Progress = "auto"
    """Whether the terminal shows progress in its own bar; auto: if it is known to support it."""
    status_line: str | None = None
    """Shell command whose first line of output replaces the status bar; it gets the state as JSON."""
    status_line_timeout: Annotated[float, Meta(gt=0, le=60)] = 2.0
    """Time limit of the status line command, in seconds."""


def _normal(keys: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(normal(key) for key in keys))
    except ValueError as error:
        raise ValueError(f"must be keys, and the keyboard {error}") from None


Keys = Annotated[tuple[str, ...], check(_normal, before=lambda value: (value,) if isinstance(value, str) else value)]


class _KeyChanges(Section):
    @property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """The keys that were set, by action: also to their defaults, because then another action cannot take them."""
        return {action.name: keys for action in _BY_NAME if (keys := getattr(self, action.name)) is not action.keys}

    def problem(self) -> str:
        return problem(self.changes)


_BY_NAME = sorted(ACTIONS, key=lambda action: action.name)


def _section() -> type[_KeyChanges]:
    fields = [(action.name, Keys, action.keys) for action in ACTIONS]
    return cast("type[_KeyChanges]", msgspec.defstruct("Keys", fields, bases=(_KeyChanges,), module=__name__))


class KeySettings(_section()):
    """Keys of each action."""


class AgentSettings(Section):
    """The agent's loop and the thresholds of its context."""

    context_budget: Tokens | None = None
    """Cap on context tokens; unset: the whole window."""
    max_output_tokens: Count | None = None
    """Tokens reserved for an answer; unset: depends on the model."""
    compact_trigger: Share = 0.95
    """Share of the effective window at which swecli compacts automatically."""
    hard_block: Share = 0.98
    """Share of the effective window above which swecli sends nothing until there is space."""
    result_offload_threshold: Count = 4_096
    """Bytes of command or server output kept in the context; longer output is stored and read in parts."""
    max_steps: Count | None = None
    """Cap on model calls per turn; unset: none."""


def secret_name(value: str) -> str:
    """``value`` if it is a pattern of a name; raises ``ValueError`` otherwise."""
    check_pattern(value)
    return value


SecretName = Annotated[str, check(secret_name)]


class ApprovalSettings(Section):
    """Calls that run without approval. The permission decision defines the grammar of the rules."""

    mode: Mode = "default"
    """default: reads freely, asks before everything else; accept-edits: file edits are accepted, commands still
    ask; plan: read-only, nothing will be changed; auto: like accept-edits, and sandboxed commands run unasked."""
    allow: tuple[str, ...] = ()
    """Rules for calls that run without approval, such as Bash(npm test *)."""
    ask: tuple[str, ...] = ()
    """Rules for calls that always ask; they override allow."""
    deny: tuple[str, ...] = ()
    """Rules for calls that never run; they override all others."""
    secret_names: tuple[SecretName, ...] = ()
    """Further names of files that may hold secrets, such as *.vault, private/ or /config/keys.yml; !name is none."""
    require_trust: bool = False
    """Whether headless runs start only in trusted workspaces."""


class ToolSettings(Section):
    """Tools and their limits."""

    command_timeout: Seconds = 120.0
    """Time limit of a shell command in seconds, unless the model requests another."""
    process_limit: Count = 1_024
    """Processes and threads that a command may have at once; a command that exceeds it is killed."""
    tool_deferral_threshold: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Share of the effective window for descriptions of MCP tools; beyond it, tools are withheld until tool_search
    finds them. 1: none are withheld."""
    attribution: bool = False
    """Whether commit messages of /commit end with a line that names swecli and the model."""
    web_fetch: bool = True
    """Whether the model can fetch web pages; each host asks, unless WebFetch(domain:host) allows it."""


def _domains(value: tuple[str, ...]) -> tuple[str, ...]:
    for domain in value:
        if not _DOMAIN.fullmatch(domain):
            raise ValueError(f"must be domains in lower case, such as docs.python.org, not {domain!r}")
    return value


class WebSearchSettings(Section):
    """Web search, off by default: the provider's own, or your search engine's."""

    enabled: bool = False
    """Whether the model can search the web. What it searches for goes to the provider, or to url."""
    url: Annotated[str, check(_url)] | None = None
    """Your search engine, which answers GET URL?q=...&format=json like SearXNG; unset: the provider's own search."""
    allowed_domains: Annotated[tuple[str, ...], check(_domains)] = ()
    """The only domains that results may come from, subdomains included; empty: all."""
    blocked_domains: Annotated[tuple[str, ...], check(_domains)] = ()
    """Domains that results never come from, subdomains included. Not together with allowed_domains."""
    max_per_turn: Count = 5
    """Searches in one turn."""


class SubagentSettings(Section):
    """Tasks that the model delegates to subagents."""

    enabled: bool = True
    """Whether the model can use subagents."""
    at_once: Count = 4
    """Subagents that work at the same time; others wait."""
    max_steps: Count = 50
    """Model calls after which a subagent is stopped."""
    max_tokens: Count = 3_000_000
    """Input and output tokens after which a subagent is stopped."""
    max_price: Dollars | None = None
    """US dollars after which a subagent is stopped; unset: no cap."""
    result_tokens: Annotated[int, Meta(ge=200, le=1_500)] = 1_500
    """Tokens of a subagent's report that join the conversation."""
    model: Reference | None = None
    """Model of subagents whose profile names none, as provider/name or an alias; unset: the session's model."""


class PlaybookSettings(Section):
    """What swecli learns about a project: short sentences in .swecli/playbook.jsonl, shown by /playbook."""

    enabled: bool = True
    """Whether the model gets what swecli learned about the project; false also stops learning."""
    learn: bool = True
    """Whether swecli learns new lessons and counts outcomes; both change the file."""
    reflect: bool = False
    """Whether the small model is asked for further lessons at the end of a session and after ten idle minutes."""


Money = Annotated[float, Meta(gt=0, le=1_000_000)]
"""US dollars."""


class BudgetSettings(Section):
    """Spending limits. swecli asks before a request would cross one; a headless run stops."""

    turn: Money | None = None
    """US dollars per turn; unset: no limit."""
    session: Money | None = None
    """US dollars per session."""
    day: Money | None = None
    """US dollars per day, all sessions in all folders together."""
    turn_tokens: Count | None = None
    """Input and output tokens per turn."""
    session_tokens: Count | None = None
    """Input and output tokens per session."""
    day_tokens: Count | None = None
    """Input and output tokens per day, all sessions in all folders together."""


class HookSettings(Section):
    """One hook: a command that runs at an event of the session."""

    command: Annotated[str, Meta(min_length=1)]
    """Command for bash, run in the project's folder with the event as JSON on stdin."""
    matcher: str = ""
    """Tools, or kinds of the event, that it applies to: names separated by |, or a regular expression."""
    timeout: Seconds = 60.0
    """Time limit in seconds."""
    condition: str = msgspec.field(default="", name="if")
    """A permission rule such as "Bash(git *)"; the hook runs only for calls with a part that matches it."""
    background: bool = msgspec.field(default=False, name="async")
    """true: work does not wait for it, it decides nothing, and its message to the model comes with your next
    message."""


Hooked = tuple[HookSettings, ...]


class HooksSettings(Section):
    """Your own commands that run at events of a session, in the format of Claude Code's hooks."""

    user_claude: bool = False
    """Whether hooks from ~/.claude/settings.json also run."""
    SessionStart: Hooked = ()
    """A session begins or resumes; the output goes to the model. Matcher: startup, resume, compact."""
    SessionEnd: Hooked = ()
    """A session ends."""
    UserPromptSubmit: Hooked = ()
    """You sent a message; the hook can block it, and its output goes to the model with the message."""
    PreToolUse: Hooked = ()
    """The model wants to call a tool; the hook can block the call, make it ask, or change it."""
    PostToolUse: Hooked = ()
    """A call succeeded."""
    PostToolUseFailure: Hooked = ()
    """A call failed."""
    PermissionRequest: Hooked = ()
    """A call is about to ask for approval; the hook can refuse it."""
    PreCompact: Hooked = ()
    """The context is about to be compacted. Matcher: manual, auto."""
    PostCompact: Hooked = ()
    """The context was compacted."""
    SubagentStart: Hooked = ()
    """A subagent begins."""
    SubagentStop: Hooked = ()
    """A subagent ends."""
    Stop: Hooked = ()
    """The model has finished; the hook can make it continue."""
    Notification: Hooked = ()
    """You are needed: an approval or question waits, or you have been idle for a minute after a turn."""

    def of(self, event: str) -> tuple[HookSettings, ...]:
        """The hooks of an event, by its name."""
        return getattr(self, event)


class TelemetrySettings(Section):
    """Traces and metrics for your own OpenTelemetry collector (extra otel). Nothing is sent unless you turn it on."""

    enabled: bool = False
    """Whether to send what sessions do: turns, requests, tool calls, tokens, cost, approvals."""
    endpoint: Annotated[str, check(_url)] | None = None
    """Base address of the collector (OTLP over HTTP); unset: OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318."""
    content: bool = False
    """Whether texts are sent as well: your messages, answers, arguments and results of tools."""


class McpSettings(Section):
    """An MCP server under a name of your choice: a program that swecli starts (``command``), or an address (``url``).
    ``${NAME}`` and ``${NAME:-default}`` insert environment variables."""

    command: str | None = None
    """Program to start."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = {}
    """Environment variables for it, in addition to the few that every server gets."""
    cwd: str | None = None
    """Directory to start it in; unset: the working directory."""
    url: str | None = None
    """Address of a running server."""
    transport: Literal["stdio", "http", "sse"] | None = None
    """How to connect; unset: stdio for a command, http for a url."""
    headers: dict[str, str] = {}
    """Headers of every request to the url."""
    enabled: bool = True
    """false: it is listed but not started."""
    trust: bool = False
    """Whether its tools that declare themselves read-only run without approval."""
    start_timeout: Seconds = 30.0
    """Seconds to wait for the server at start."""
    call_timeout: Seconds = 300.0
    """Seconds that a call may take without progress."""


class DiagnosticsSettings(Section):
    """Errors that language servers find in edited files. Servers run only in trusted workspaces."""

    enabled: bool = True
    """Whether language servers are used: those on PATH, and those in [language_servers.NAME]."""
    wait: Annotated[float, Meta(gt=0, le=2)] = 2.0
    """Seconds that the result of an edit waits for new errors; later errors are reported later."""
    most: Count = 10
    """Maximum number of new errors reported with one edit."""
    idle: Seconds = 600.0
    """Seconds without use after which a server is stopped; the next edit starts it again."""


class LanguageServerSettings(Section):
    """A language server under a name of your choice. The name of a known server (basedpyright, pyright, pylsp,
    typescript, tsc, gopls, rust-analyzer, clangd) changes that one."""

    command: str | None = None
    """Program to start: a name on PATH, or an absolute path."""
    args: tuple[str, ...] = ()
    """Its arguments; without a command they are added to those of the known server."""
    extensions: tuple[str, ...] = ()
    """File extensions that it handles, such as ".zig"."""
    language: Word | None = None
    """Language id sent to the server; unset: the extension without its dot."""
    roots: tuple[str, ...] = ()
    """File names that mark the root of a project."""
    options: dict[str, Any] = {}
    """Initialization options."""
    settings: dict[str, Any] = {}
    """Answers to the server's configuration requests, by section."""
    env: dict[str, str] = {}
    """Environment variables for it."""
    enabled: bool = True
    """false: the server is not used."""
    sandbox: bool = True
    """Whether it runs sandboxed if possible, without writing the workspace or reaching the network."""


class InstructionSettings(Section):
    """Instruction files of a project (OPENCLI.md, AGENTS.md and others), and your own."""

    merge: Literal["folder", "nearest", "all", "none"] = "folder"
    """Which instruction files apply, from the project's root down to the working directory: the first of each folder,
    those of the nearest folder, all of each folder, or none."""
    imports: bool = True
    """Whether @path in such a file includes another file of the project."""
    nested: bool = True
    """Whether the model gets instruction files of subfolders when it reads something there, and changes on disk."""
    rules: bool = True
    """Whether rule files of other agents apply, such as those in .claude/rules and .cursor/rules."""
    other_agents: bool = True
    """Whether your own instructions for another agent, as in ~/.claude/CLAUDE.md, apply if you have none for swecli."""


class MemorySettings(Section):
    """Memory beyond one conversation: session notes, and files that you or the model write."""

    enabled: bool = True
    """Whether the prompt contains memories and the model has a memory tool."""
    notes: bool = True
    """Whether swecli keeps session notes in .swecli/memory/session_notes.md of a trusted workspace."""
    scratchpad: bool = True
    """Whether the model has a scratchpad for the conversation."""
    max_tokens: Annotated[int, Meta(ge=100, le=20_000)] = 800
    """Maximum tokens of all memories in the prompt; the rest is listed by name."""
    max_file_bytes: Annotated[int, Meta(ge=1_000, le=1_000_000)] = 65_536
    """Largest file, in bytes, that the memory tool writes."""


class Settings(Section):
    """All settings."""

    agent: AgentSettings = AgentSettings()
    context: ContextSettings = ContextSettings()
    model: ModelSettings = ModelSettings()
    models: ModelsSettings = ModelsSettings()
    providers: dict[str, ProviderSettings] = {}
    approval: ApprovalSettings = ApprovalSettings()
    sandbox: SandboxSettings = SandboxSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    log: LogSettings = LogSettings()
    sessions: SessionSettings = SessionSettings()
    tools: ToolSettings = ToolSettings()
    web_search: WebSearchSettings = WebSearchSettings()
    instructions: InstructionSettings = InstructionSettings()
    memory: MemorySettings = MemorySettings()
    subagents: SubagentSettings = SubagentSettings()
    playbook: PlaybookSettings = PlaybookSettings()
    budget: BudgetSettings = BudgetSettings()
    mcp: dict[str, McpSettings] = {}
    diagnostics: DiagnosticsSettings = DiagnosticsSettings()
    language_servers: dict[str, LanguageServerSettings] = {}
    ui: UiSettings = UiSettings()
    keys: KeySettings = KeySettings()
    hooks: HooksSettings = HooksSettings()
    telemetry: TelemetrySettings = TelemetrySettings()


NAMED: Mapping[str, type[Section]] = MappingProxyType(
    {"providers": ProviderSettings, "mcp": McpSettings, "language_servers": LanguageServerSettings}
)
"""Sections of tables with names of the user's choice, and their content."""

SECTIONS: Mapping[str, type[Section]] = MappingProxyType(
    {name: type(content) if isinstance(content, Section) else NAMED[name] for name, content in fields_of(Settings())}
)
"""All sections; for those of named tables, their content."""

ROLES = ("main", "summary", "small")
"""Names for models by their role in the settings."""


def expand(reference: str, settings: Settings) -> str:
    """``provider/model`` for an alias or a role; other text unchanged."""
    model = settings.model
    role = {"main": model.name, "summary": model.summary or model.name, "small": model.small or model.name}
    for _ in ROLES:  # a role may name another one
        if reference in settings.models.aliases:
            return settings.models.aliases[reference]
        if reference not in role:
            break
        reference = role[reference] or reference
    return reference


def named_models(settings: Settings) -> tuple[str, ...]:
    """Every ``provider/model`` that the settings name, the roles first."""
    model, models = settings.model, settings.models
    roles = [expand(name, settings) for name in (model.name, model.summary, model.small, *model.fallback) if name]
    details = (models.price, models.window, models.effort, models.capabilities)
    return tuple(dict.fromkeys([*roles, *models.aliases.values(), *(name for detail in details for name in detail)]))


def fallback_models(settings: Settings) -> tuple[str, ...]:
    """Fallback models for the main model, as ``provider/model``."""
    return tuple(expand(name, settings) for name in settings.model.fallback)


def side_models(settings: Settings) -> dict[str, str]:
    """Configured models for work beside the conversation."""
    roles = {"summary": settings.model.summary, "small": settings.model.small}
    return {work: expand(name, settings) for work, name in roles.items() if name is not None}


Key = tuple[str, ...]

_BOTH = ("context_budget", "max_output_tokens", "compact_trigger", "hard_block", "result_offload_threshold")

SYNONYMS: Mapping[Key, Key] = MappingProxyType(
    {
        **{("context", name): ("agent", name) for name in _BOTH},
        ("context", "max_context_tokens"): ("agent", "context_budget"),
        ("context", "summary_model"): ("model", "summary"),
        ("agent", "auto_compact"): ("context", "auto_compact"),
        ("agent", "warn"): ("context", "warn"),
        ("agent", "target_tokens"): ("context", "target_tokens"),
        ("agent", "tool_deferral_threshold"): ("tools", "tool_deferral_threshold"),
    }
)
"""Other name -> canonical name."""


def canonical(key: Key) -> Key:
    return SYNONYMS.get(key, key)


def other_names(section: str) -> tuple[str, ...]:
    """Keys that may be written in a section although another section keeps them."""
    return tuple(key[1] for key in SYNONYMS if key[0] == section)
