"""The settings: every section and key that has an effect, with its default and what it allows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from swecli.core.config.key_actions import ACTIONS, normal, problem
from swecli.core.protocol.events import Mode, RotKind

_WORD = re.compile(r"[A-Za-z0-9_.-]+")


def word(value: str) -> str:
    """``value`` if it is one word.

    Raises:
        ValueError: it is not.
    """
    if not _WORD.fullmatch(value):
        raise ValueError("must be one word")
    return value


Word = Annotated[str, AfterValidator(word)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1_000)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """Base of all sections. Values are taken as written: "10" is no number, true is no count."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class CheckpointSettings(Section):
    """Copies of files for /undo."""

    enabled: bool = True
    """false: nothing is recorded, and /undo has nothing to take back."""
    max_file_bytes: Count = 2_000_000
    """The largest file that is copied because a command could change it. Files that are edited are always copied."""
    max_total_bytes: Count = 500_000_000
    """All copies of one workspace together, compressed. The changes of the oldest sessions go first."""
    max_files: Count = 100_000
    """The most files and folders of a tree that are looked at around a command."""
    keep_days: Count = 30
    """For how long after its last change the changes of a session can be taken back."""


class LogSettings(Section):
    """Logs of sessions in .swecli/logs of a trusted folder."""

    enabled: bool = True
    """false: none are written. ``swecli logs export`` works all the same."""
    max_bytes: Annotated[int, Field(ge=10_000)] = 5_000_000
    """A log that reaches this size gets another name and a new one begins; three older ones are kept."""


class SessionSettings(Section):
    """Which stored sessions are deleted by themselves. Without a rule none is."""

    delete_after_days: Count | None = None
    """Sessions that were not used for so many days are deleted, with their results, file changes and logs."""
    max_total_bytes: Count | None = None
    """All sessions of one workspace together. Those used longest ago go first."""
    protect_days: Count = 30
    """For so many days after its last use no rule deletes a session."""


Strategy = Literal["chain", "truncation", "importance", "summarization"]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Pattern = Annotated[str, Field(min_length=1)]

RETENTION_ACTIONS = ("keep_turns", "keep_last", "until_file_changes", "head_tail", "offload_over", "never_drop")


class RetentionSettings(Section):
    """One rule about results in the context: what it is about (patterns with ``*`` and ``?``, all of them must match),
    and exactly one thing to do. The first rule that matches a result decides about it."""

    tool: Pattern = "*"
    """Name of the tool."""
    kind: Literal["result", "arguments"] = "result"
    """``arguments``: what the model wrote into finished calls that write files."""
    path: Pattern = "*"
    """The path or command that the call was about."""
    keep_turns: Count | None = None
    """Goes when its turn is so many turns ago."""
    keep_last: Count | None = None
    """Only the newest so many of them stay."""
    until_file_changes: bool = False
    """Goes when the file that it shows has been changed since."""
    head_tail: Count | None = None
    """What is longer than so many tokens keeps its beginning and end, half of them each."""
    offload_over: Count | None = None
    """What is longer than so many tokens leaves a reference."""
    never_drop: bool = False
    """Stays word for word in every compaction, that of a summary and the cutting of the oldest messages included."""

    def __str__(self) -> str:
        """The rule as people read it; also its name where something went by it."""
        about = [text for text in (self.tool, self.path) if text != "*"]
        about += [self.kind] if self.kind != "result" else []
        name = next((name for name in RETENTION_ACTIONS if getattr(self, name)), "")
        value = getattr(self, name, None)
        return f"{' '.join(about) or 'everything'}: {name}{'' if value is True else f' {value}'}"

    @model_validator(mode="after")
    def _one_action(self) -> RetentionSettings:
        given = [name for name in RETENTION_ACTIONS if getattr(self, name)]
        if len(given) != 1:
            found = f"not {' and '.join(given)}" if given else "it has none"
            raise ValueError(f"must have exactly one of {', '.join(RETENTION_ACTIONS)}: {found}")
        if self.kind == "arguments" and given[0] in ("until_file_changes", "head_tail"):
            raise ValueError(f"must not have {given[0]}: it applies to results, and this rule to arguments")
        return self


Amount = Annotated[Count | Share, Field(union_mode="left_to_right")]
"""A share of the effective window with a decimal point (0.1), or tokens without one."""


class ContextLimitSettings(Section):
    """The most that parts of the context may take of the effective window: a share (0.1) or tokens (4000). What is in
    each request above its limit is reported; results above theirs are stored and read in parts."""

    system: Amount | None = None
    """swecli's own prompt."""
    instructions: Amount | None = None
    """Instruction files of the project, and your own."""
    tools: Amount | None = None
    """Descriptions of all tools."""
    tool_results: Amount | None = None
    """All results together."""
    tool_result: Amount | None = None
    """Each single result."""


class ServerClearingSettings(Section):
    """Anthropic's own clearing of old tool results (context editing), on its side of a request. Other providers have
    nothing like it."""

    enabled: bool = False
    """Whether it is asked for."""
    trigger_tokens: Tokens = 100_000
    """Tokens of a prompt from which on the provider clears."""
    keep_tool_uses: Count = 3
    """Newest calls whose results stay."""
    exclude_tools: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Tools whose results stay."""


class ContextSettings(Section):
    """How the context is kept within its window. Thresholds of the gate itself are in the section agent."""

    auto_compact: bool = True
    """False: no model is asked to compact and nothing is cleared unless the user says so."""
    strategy: Strategy = "chain"
    """How room is made: chain clears old results, then summarises, then cuts; truncation leaves out the oldest
    messages, importance those that score lowest, both without a model; summarization writes a summary at once."""
    warn: Share = 0.80
    """Share of the effective window from which on swecli warns user and model."""
    target_tokens: Tokens | None = None
    """Tokens of a request from which on it is compacted in any case; unset: only the share counts."""
    keep_recent: Count = 10
    """Newest messages that stay word for word, as far as they have room."""
    keep_recent_tokens: Count | None = None
    """Tokens of the newest messages that stay word for word; unset: by the size of the window."""
    max_summary_tokens: Count | None = None
    """The longest summary; unset: by the size of the window."""
    user_message_score: Score = 1.0
    """Strategy importance: what a message of the user scores."""
    assistant_message_score: Score = 0.6
    """Strategy importance: what an answer scores; a short one scores two fifths of it."""
    tool_use_score: Score = 1.0
    """Strategy importance: what a message with tool calls scores."""
    min_score_threshold: Score = 0.3
    """Strategy importance: older messages that score less are left out."""
    retrieval: bool = True
    """Whether a message gets pointers to files that it names or is about, from an index of the folder."""
    retrieval_model: bool = False
    """Whether the small model (model.small) names words to look for besides those of the message."""
    sentinel: bool = True
    """Whether swecli suggests, at the end of a turn, what would serve a conversation that has become worse."""
    sentinel_silenced: Annotated[tuple[RotKind, ...], Field(strict=False)] = ()
    """What is never suggested: contradiction, reverted, failing, reread, stale, summaries, repeated."""
    retention: tuple[RetentionSettings, ...] = ()
    """Rules about what goes first and what stays, in order."""
    limits: ContextLimitSettings = Field(default_factory=ContextLimitSettings.model_construct)
    """The most that single parts may take of the effective window; unset: no limit of their own."""
    server_clearing: ServerClearingSettings = Field(default_factory=ServerClearingSettings.model_construct)
    """Anthropic's own clearing of old tool results, on its side of each request."""


Protocol = Literal["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat"]

_MODEL = re.compile(r"[^/\s]+/\S+")
_REFERENCE = re.compile(r"[A-Za-z0-9_.-]+|[^/\s]+/\S+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


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


Model = Annotated[str, AfterValidator(_model)]
"""``provider/model``."""
Reference = Annotated[str, AfterValidator(_reference)]
"""``provider/model``, an alias, or one of the names main, summary and small."""


class ModelSettings(Section):
    """The models by their roles, and how long to wait for an answer."""

    name: Reference | None = None
    """The main model, which answers your messages."""
    summary: Reference | None = None
    """Writes summaries when the context is compacted; unset: the main model."""
    small: Reference | None = None
    """Answers questions beside the conversation; unset: the main model."""
    fallback: tuple[Reference, ...] = ()
    """Asked in this order while the main model is overloaded or out of quota for the moment."""
    effort: Word | None = None
    """How much the main model thinks, in the provider's word; unset: the provider's default."""
    first_token_timeout: Seconds | None = None
    """Seconds until the first piece of an answer; unset: 10 minutes, for a local server an hour."""
    stall_timeout: Seconds = 120.0
    """Seconds between two pieces of an answer."""


Dollars = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
"""US dollars for a million tokens."""


class PriceSettings(Section):
    """What a model costs. A cache rate that is unset is that of the input."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class ModelsSettings(Section):
    """What is said of single models."""

    aliases: dict[Word, Model] = Field(default_factory=dict)
    """Short names."""
    effort: dict[Model, Word] = Field(default_factory=dict)
    """How much each thinks; comes before ``model.effort``."""
    window: dict[Model, Tokens] = Field(default_factory=dict)
    """Context windows; come before everything else that is known of them."""
    price: dict[Model, PriceSettings] = Field(default_factory=dict)
    """Prices; come before the catalogue, but not before what a provider reports."""


class DialectSettings(Section):
    """How a server differs from the usual form of its protocol. What is unset is as for servers of its kind."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    system_role: Literal["system", "developer"] | None = None
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
    think_tags: Literal["keep", "split", "opened"] | None = None
    tool_calls: Literal["native", "auto", "text"] | None = None
    body: dict[str, Any] | None = None
    """Sent with every request."""

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in self if value is not None}


class ProviderSettings(Section):
    """One provider under a name of the user's choice."""

    protocol: Protocol | None = None
    """The protocol that the server speaks."""
    base_url: Annotated[str, AfterValidator(_url)] | None = None
    """Address of its API."""
    api_key_env: Annotated[str, AfterValidator(_variable)] | None = None
    """Name of the environment variable that holds the key; never the key itself."""
    headers: Annotated[dict[str, str], AfterValidator(_header_names)] = Field(default_factory=dict)
    """Headers of every request."""
    window: Tokens | None = None
    """Context window of its models in tokens, where it can't be asked."""
    max_output: Count | None = None
    """The longest answer of its models in tokens."""
    dialect: DialectSettings = Field(default_factory=DialectSettings.model_construct)
    """How the server differs from the usual form of its protocol."""


def _place(value: str) -> str:
    if "\0" in value or not value.startswith(("/", "~/")):
        raise ValueError("must be an absolute path, or start with ~/")
    return value


Place = Annotated[str, AfterValidator(_place)]


class SandboxSettings(Section):
    """Where commands are contained, and what they may reach there."""

    mode: Literal["auto", "on", "off"] = "auto"
    """"auto": in auto mode, where it lets a command run without a question; "on": every command; "off": none."""
    required: bool = False
    """Whether swecli starts only where the sandbox is full."""
    network: bool = False
    """Whether contained commands reach the network; the sandbox is only partial then."""
    writable: tuple[Place, ...] = ()
    """Places besides the workspace that commands may write."""
    hide: tuple[Place, ...] = ()
    """Places that commands do not see, besides the usual ones for keys and passwords."""
    ask_outside: bool = True
    """Whether the user is asked at once when the sandbox stopped a command."""


Notify = Literal["auto", "bell", "osc9", "osc777", "off"]
Density = Literal["short", "usual", "full"]
DiffForm = Literal["auto", "unified", "split"]
Progress = Literal["auto", "on", "off"]
Glyphs = Literal["auto", "unicode", "ascii"]
Editing = Literal["usual", "vim"]


class UiSettings(Section):
    """The terminal interface."""

    theme: Word = "auto"
    """A theme's name; "auto" follows the terminal."""
    reduced_motion: bool = False
    """Whether nothing turns or moves by itself: no spinner, and the seconds of a turn once a second."""
    glyphs: Glyphs = "auto"
    """Signs and bars of the interface: unicode, or ascii where the terminal's font lacks them; auto goes by TERM and
    the locale."""
    density: Density = "usual"
    """How much is shown of everything at first; Ctrl+O goes on from there."""
    diff: DiffForm = "auto"
    """split shows old and new text side by side, unified one below the other; auto splits from 160 columns on."""
    editing: Editing = "usual"
    """The prompt's keys: those of a shell, or vim's with an insert and a normal mode."""
    large_message: Share = 0.25
    """Share of the window above which a message with pastes or images is asked about before it is sent."""
    forecast: bool = True
    """Whether the size and the price of the next request are shown while a message is typed."""
    notify: Notify = "auto"
    """How the terminal is told, while it has not the focus, that a turn has ended or a question waits; auto takes what
    the terminal is known to show, or else its bell."""
    mouse: bool = True
    """Whether the program has the mouse (wheel, selection); without it the terminal selects text by itself. Alt+M
    changes it meanwhile."""
    title: bool = True
    """Whether the terminal's title shows the folder and what is going on."""
    progress: Progress = "auto"
    """Whether the terminal shows in its own bar that work is going on; auto where it is known to."""
    status_line: str | None = None
    """A shell command whose first line of output replaces the status bar; it gets the state as JSON."""
    status_line_timeout: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 2.0
    """Seconds that this command may take."""


def _as_list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _normal(keys: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(normal(key) for key in keys))
    except ValueError as error:
        raise ValueError(f"must be keys, and the keyboard {error}") from None


Keys = Annotated[tuple[str, ...], AfterValidator(_normal), BeforeValidator(_as_list)]


class _Checked(Section):
    @property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """What was set, by the name of the action."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}

    @model_validator(mode="after")
    def _without_conflict(self) -> _Checked:
        if found := problem(self.changes):
            raise ValueError(found)
        return self


def _section() -> type[_Checked]:
    fields: dict[str, Any] = {action.name: (Keys, action.keys) for action in ACTIONS}
    return create_model("Keys", __base__=_Checked, __module__=__name__, **fields)


class KeySettings(_section()):
    """Keys of each action."""


class AgentSettings(Section):
    """The agent's loop and the limits of its context window."""

    context_budget: Tokens | None = None
    """Tokens to use of the model's window; unset: what the model has."""
    max_output_tokens: Count | None = None
    """Tokens reserved for an answer; unset: by the model."""
    compact_trigger: Share = 0.95
    """Share of the effective window at which swecli makes room by itself."""
    hard_block: Share = 0.98
    """Share of the effective window from which on nothing is sent until there is room."""
    result_offload_threshold: Count = 4_096
    """Bytes of output of commands and servers that stay in the context; more is stored and read in parts."""
    max_steps: Count | None = None
    """Model calls in one turn; unset: no cap."""


class ApprovalSettings(Section):
    """What runs without a question. The rules' grammar belongs to the permission decision."""

    mode: Mode = "default"
    """default: reading the workspace runs, everything else asks; accept-edits: file edits are accepted, commands still
    ask; plan: read-only, nothing will be changed; auto: like accept-edits, and sandboxed commands run unasked."""
    allow: tuple[str, ...] = ()
    """Rules about what runs without a question, such as Bash(npm test *)."""
    ask: tuple[str, ...] = ()
    """Rules about what is asked about in any case; they win over allow."""
    deny: tuple[str, ...] = ()
    """Rules about what never runs; they win over all others."""
    require_trust: bool = False
    """Whether one-shot runs start only in trusted workspaces."""


class ToolSettings(Section):
    """What tools may use, and their limits."""

    command_timeout: Seconds = 120.0
    """Seconds a shell command may run unless the model asks for another limit."""
    process_limit: Count = 1_024
    """Processes and threads that a command may have at the same time; one that tries to have more is ended."""
    tool_deferral_threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.1
    """Share of the effective window that descriptions of servers' tools may take; the others are withheld until
    tool_search finds them. 1: none are withheld."""
    attribution: bool = False
    """Whether the messages of /commit name swecli and the model in their last line."""
    web_fetch: bool = True
    """Whether pages of the web can be fetched; each host is asked about, or allowed by WebFetch(domain:host)."""


class SubagentSettings(Section):
    """Tasks that the model gives to subagents."""

    enabled: bool = True
    """Whether the model can use subagents."""
    at_once: Count = 4
    """Subagents that work at the same time; further ones wait."""
    max_steps: Count = 50
    """Model calls of one subagent, after which it is stopped."""
    max_tokens: Count = 3_000_000
    """Input and output tokens of one subagent, after which it is stopped."""
    max_price: Dollars | None = None
    """US dollars of one subagent, after which it is stopped; unset: no cap."""
    result_tokens: Annotated[int, Field(ge=200, le=1_500)] = 1_500
    """Tokens of a subagent's report that come into the conversation."""
    model: str | None = None
    """The model of subagents whose profile names none, as provider/name or an alias; unset: that of the session."""


class PlaybookSettings(Section):
    """What swecli learns about a project: short sentences in .swecli/playbook.jsonl, shown by /playbook."""

    enabled: bool = True
    """Whether the model sees them; false: nothing is learned either."""
    learn: bool = True
    """Whether new ones are learned and outcomes counted, which both change the file."""
    reflect: bool = False
    """Whether the small model is asked what else could be learned, at the end of a session and after ten idle
    minutes."""
    withhold: Annotated[float, Field(ge=0, le=0.5, allow_inf_nan=False)] = 0.1
    """Share of those that apply which is held back, the same for a whole session, to compare how it goes without."""


Money = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
"""US dollars."""


class BudgetSettings(Section):
    """What may be spent. You are asked before a request would cross it; where nobody can be asked the run stops."""

    turn: Money | None = None
    """US dollars of one turn; unset: no budget."""
    session: Money | None = None
    """US dollars of one session."""
    day: Money | None = None
    """US dollars of one day, all sessions of all folders together."""
    turn_tokens: Count | None = None
    """Input and output tokens of one turn."""
    session_tokens: Count | None = None
    """Input and output tokens of one session."""
    day_tokens: Count | None = None
    """Input and output tokens of one day, all sessions of all folders together."""


class HookSettings(Section):
    """One hook: a command that runs at an event of the session."""

    command: Annotated[str, Field(min_length=1)]
    """Run by bash in the project's folder, with the event as JSON on its stdin."""
    matcher: str = ""
    """Which tools it is about, or which kinds of the event: names with | between them, or a regular expression."""
    timeout: Seconds = 60.0
    """Seconds that it may run."""
    condition: str = Field("", alias="if")
    """A permission rule such as "Bash(git *)": only calls of which a part falls under it."""
    background: bool = Field(False, alias="async")
    """true: nobody waits for it, it decides nothing, and what it tells the model comes with your next message."""


Hooked = tuple[HookSettings, ...]


class HooksSettings(Section):
    """Commands of your own that run at events of a session, in the format of Claude Code's hooks."""

    user_claude: bool = False
    """Whether the hooks of ~/.claude/settings.json run here too."""
    SessionStart: Hooked = ()
    """A session begins or goes on; what it prints is for the model. Matcher: startup, resume, compact."""
    SessionEnd: Hooked = ()
    """A session ends."""
    UserPromptSubmit: Hooked = ()
    """You sent a message; it may be blocked, and what is printed goes to the model with it."""
    PreToolUse: Hooked = ()
    """The model wants to call a tool; the call may be blocked, asked about, or changed."""
    PostToolUse: Hooked = ()
    """A call succeeded."""
    PostToolUseFailure: Hooked = ()
    """A call failed."""
    PermissionRequest: Hooked = ()
    """You are about to be asked about a call; it may be refused."""
    PreCompact: Hooked = ()
    """The context is about to be compacted. Matcher: manual, auto."""
    PostCompact: Hooked = ()
    """The context was compacted."""
    SubagentStart: Hooked = ()
    """A subagent begins."""
    SubagentStop: Hooked = ()
    """A subagent is done."""
    Stop: Hooked = ()
    """The model is done; it may be told to go on."""
    Notification: Hooked = ()
    """You are wanted: an approval or a question waits, or nothing was said for a minute after a turn."""

    def of(self, event: str) -> tuple[HookSettings, ...]:
        """The hooks of an event, by its name."""
        return getattr(self, event)


class McpSettings(Section):
    """One MCP server under a name of the user's choice: a program that swecli starts (``command``), or an address
    (``url``). ``${NAME}`` and ``${NAME:-default}`` stand for variables of the environment."""

    command: str | None = None
    """The program to start."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables for it, besides the few that every server gets."""
    cwd: str | None = None
    """Where it is started; unset: in the working directory."""
    url: str | None = None
    """Address of a server that runs already."""
    transport: Literal["stdio", "http", "sse"] | None = None
    """How to talk to it; unset: stdio with a command, http with a url."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers of every request to the url."""
    enabled: bool = True
    """false: it is known and not started."""
    trust: bool = False
    """Whether its tools that say that they only read run without a question."""
    start_timeout: Seconds = 30.0
    """Seconds that it may take to answer when it is started."""
    call_timeout: Seconds = 300.0
    """Seconds that a call may take without a sign of progress."""


class DiagnosticsSettings(Section):
    """What language servers find wrong with edited files. Servers run in trusted workspaces only."""

    enabled: bool = True
    """Whether language servers are used: those that are on PATH, and those of [language_servers.NAME]."""
    wait: Annotated[float, Field(gt=0, le=2, allow_inf_nan=False)] = 2.0
    """Seconds that the result of an edit waits for new errors; later errors are reported later."""
    most: Count = 10
    """New errors reported with one edit, at most."""
    idle: Seconds = 600.0
    """Seconds without use after which a server is ended; the next edit starts it again."""


class LanguageServerSettings(Section):
    """One language server under a name of the user's choice. That of a known server (basedpyright, pyright, pylsp,
    typescript, tsc, gopls, rust-analyzer, clangd) changes it."""

    command: str | None = None
    """The program to start: a name on PATH, or an absolute path."""
    args: tuple[str, ...] = ()
    """Its arguments; without a command they are added to those of the known server."""
    extensions: tuple[str, ...] = ()
    """Endings of the files that it is for, such as ".zig"."""
    language: Word | None = None
    """The language id that the server gets; unset: the ending without its dot."""
    roots: tuple[str, ...] = ()
    """Names of files that mark the root of a project."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Initialization options."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Answers to the server's questions about its configuration, by section."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables for it."""
    enabled: bool = True
    """false: it is not used."""
    sandbox: bool = True
    """Whether it runs in the sandbox where there is one, and can't write the workspace or reach the network."""


class InstructionSettings(Section):
    """Instruction files of a project (OPENCLI.md, AGENTS.md and others), and your own."""

    merge: Literal["folder", "nearest", "all", "none"] = "folder"
    """Which of a project's files count from its root down to the working directory: the first of each folder, that of
    the nearest folder, all of each folder, or none."""
    imports: bool = True
    """Whether @path in such a file brings in another file of the project."""
    nested: bool = True
    """Whether the model learns of files in folders below when it reads something there, and of changes on disk."""


class MemorySettings(Section):
    """What is known beyond a conversation: the session notes, and files that the model or you write."""

    enabled: bool = True
    """Whether memories are in the prompt, and the model has the tool for them."""
    notes: bool = True
    """Whether swecli keeps session notes in .swecli/memory/session_notes.md, once the workspace is trusted."""
    scratchpad: bool = True
    """Whether the model has notes of its own for one conversation."""
    max_tokens: Annotated[int, Field(ge=100, le=20_000)] = 800
    """The most tokens that all memories together take in the prompt; the rest is named there."""
    max_file_bytes: Annotated[int, Field(ge=1_000, le=1_000_000)] = 65_536
    """The largest file that the memory tool writes."""


class Settings(Section):
    """All settings."""

    agent: AgentSettings = Field(default_factory=AgentSettings.model_construct)
    context: ContextSettings = Field(default_factory=ContextSettings.model_construct)
    model: ModelSettings = Field(default_factory=ModelSettings.model_construct)
    models: ModelsSettings = Field(default_factory=ModelsSettings.model_construct)
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    approval: ApprovalSettings = Field(default_factory=ApprovalSettings.model_construct)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings.model_construct)
    checkpoints: CheckpointSettings = Field(default_factory=CheckpointSettings.model_construct)
    log: LogSettings = Field(default_factory=LogSettings.model_construct)
    sessions: SessionSettings = Field(default_factory=SessionSettings.model_construct)
    tools: ToolSettings = Field(default_factory=ToolSettings.model_construct)
    instructions: InstructionSettings = Field(default_factory=InstructionSettings.model_construct)
    memory: MemorySettings = Field(default_factory=MemorySettings.model_construct)
    subagents: SubagentSettings = Field(default_factory=SubagentSettings.model_construct)
    playbook: PlaybookSettings = Field(default_factory=PlaybookSettings.model_construct)
    budget: BudgetSettings = Field(default_factory=BudgetSettings.model_construct)
    mcp: dict[str, McpSettings] = Field(default_factory=dict)
    diagnostics: DiagnosticsSettings = Field(default_factory=DiagnosticsSettings.model_construct)
    language_servers: dict[str, LanguageServerSettings] = Field(default_factory=dict)
    ui: UiSettings = Field(default_factory=UiSettings.model_construct)
    keys: KeySettings = Field(default_factory=KeySettings.model_construct)
    hooks: HooksSettings = Field(default_factory=HooksSettings.model_construct)


NAMED: Mapping[str, type[Section]] = MappingProxyType(
    {"providers": ProviderSettings, "mcp": McpSettings, "language_servers": LanguageServerSettings}
)
"""Sections of tables with names of the user's choice, and what is in each."""

ROLES = ("main", "summary", "small")
"""Names that stand for the models of the settings."""


def expand(reference: str, settings: Settings) -> str:
    """``provider/model`` for an alias or a role; anything else as it is."""
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
    return tuple(dict.fromkeys([*roles, *models.aliases.values(), *models.price, *models.window, *models.effort]))


def fallback_models(settings: Settings) -> tuple[str, ...]:
    """The models that answer while the main one can't, as ``provider/model``."""
    return tuple(expand(name, settings) for name in settings.model.fallback)


def side_models(settings: Settings) -> dict[str, str]:
    """The models for work beside the conversation, as far as they are set."""
    roles = {"summary": settings.model.summary, "small": settings.model.small}
    return {work: expand(name, settings) for work, name in roles.items() if name is not None}


def unknown_references(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Keys of the settings that name a model by a word that means nothing, with what is wrong."""
    model = settings.model
    named = {"name": (model.name,), "summary": (model.summary,), "small": (model.small,), "fallback": model.fallback}
    for key, references in named.items():
        for reference in references:
            if reference is not None and "/" not in expand(reference, settings):
                known = ", ".join(sorted(settings.models.aliases)) or "none"
                yield (
                    ("model", key),
                    f'must be "provider/model" or an alias (known: {known}), not {reference!r}',
                )


Key = tuple[str, ...]


def contradictions(settings: Settings) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Keys that contradict each other, the one that is most likely wrong first, and why."""
    agent, context = settings.agent, settings.context
    block, trigger = ("agent", "hard_block"), ("agent", "compact_trigger")
    if agent.compact_trigger > agent.hard_block:
        yield (
            (trigger, block),
            f"{agent.compact_trigger:g} must not exceed agent.hard_block {agent.hard_block:g}: swecli would block "
            "requests before it compacts",
        )
    if context.warn > agent.compact_trigger:
        yield (
            (("context", "warn"), trigger),
            f"{context.warn:g} must not exceed agent.compact_trigger {agent.compact_trigger:g}: swecli would "
            "compact before the warning",
        )
    yield from _sizes(settings)
    if context.min_score_threshold > max(
        context.user_message_score, context.assistant_message_score, context.tool_use_score
    ):
        yield (
            (("context", "min_score_threshold"),),
            f"{context.min_score_threshold:g} must not exceed every score: no older message could be kept",
        )


def _sizes(settings: Settings) -> Iterator[tuple[tuple[Key, ...], str]]:
    agent, context = settings.agent, settings.context
    window, where = _window(settings)
    budget, budget_key = agent.context_budget, ("agent", "context_budget")
    if budget is not None and window is not None and budget > window:
        yield (
            (budget_key, where),
            f"{budget:,} must not exceed the model's window, which is {window:,} tokens in {'.'.join(where)}",
        )
    total, key = (budget, budget_key) if budget is not None else (window, where)
    if total is None:
        return
    for name, size in (
        (("agent", "max_output_tokens"), agent.max_output_tokens),
        (("context", "target_tokens"), context.target_tokens),
        (("context", "keep_recent_tokens"), context.keep_recent_tokens),
        (("context", "max_summary_tokens"), context.max_summary_tokens),
    ):
        if size is not None and size >= total and (name[1] != "target_tokens" or size > total):
            yield (name, key), f"{size:,} leaves no space in {'.'.join(key)} {total:,}"


def _window(settings: Settings) -> tuple[int | None, Key]:
    """The main model's window, as far as the settings name it, and the key that does."""
    name = expand(settings.model.name, settings) if settings.model.name else ""
    if name in settings.models.window:
        return settings.models.window[name], ("models", "window")
    provider = name.partition("/")[0]
    own = settings.providers.get(provider)
    return (own.window if own is not None else None), ("providers", provider, "window")


_BOTH = ("context_budget", "max_output_tokens", "compact_trigger", "hard_block", "result_offload_threshold")

SYNONYMS: Mapping[Key, Key] = MappingProxyType(
    {
        **{("context", name): ("agent", name) for name in _BOTH},
        ("context", "max_context_tokens"): ("agent", "context_budget"),
        ("context", "summary_model"): ("model", "summary"),
        ("agent", "auto_compact"): ("context", "auto_compact"),
        ("agent", "warn"): ("context", "warn"),
        ("agent", "target_tokens"): ("context", "target_tokens"),
    }
)
"""Other name -> the name that it is kept under."""


def canonical(key: Key) -> Key:
    return SYNONYMS.get(key, key)


def other_names(section: str) -> tuple[str, ...]:
    """Keys that may be written in a section although they are kept elsewhere."""
    return tuple(key[1] for key in SYNONYMS if key[0] == section)
