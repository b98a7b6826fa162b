"""Descriptions of models in the answers of servers: listings, and what single programs say of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.llm.json_values import JsonObject, as_int, as_list, as_object, as_text, is_list, is_object

_SMALLEST, _LARGEST = 256, 100_000_000
_WINDOW_FIELDS = (
    "max_model_len",
    "loaded_context_length",
    "context_window",
    "context_length",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
    "context_size",
    "availableContextTokens",
    "max_prompt_tokens",
    "max_context_window_tokens",
    "max_seq_len",
)
_OUTPUT_FIELDS = ("max_completion_tokens", "max_output_tokens", "outputTokenLimit", "maxCompletionTokens")
_NESTS = ("limits", "model_spec", "model_info", "metadata", "context_window", "parameters", "capabilities", "dmr")
"""Keys under which some hosts put sizes and abilities: GitHub, Copilot, Venice, LiteLLM, DeepInfra, Poe, TabbyAPI,
Docker Model Runner."""


def _nests(item: JsonObject) -> list[JsonObject]:
    """The model's description and the parts of it that describe the same."""
    nests = [item]
    for outer in nests[:1] + [as_object(item.get(key)) for key in _NESTS]:
        nests += [inner for key in _NESTS if (inner := as_object(outer.get(key)))]
    return nests


def _live(item: JsonObject) -> list[JsonObject]:
    """Hugging Face: the hosts that serve a model. Its router may choose any."""
    hosts = [as_object(host) for host in as_list(item.get("providers"))]
    return [host for host in hosts if host.get("status", "live") == "live"]


class EndpointModel(Struct, frozen=True):
    """A server's description of a model. None = not given; sizes are tokens."""

    id: str
    window: int | None = None
    """Tokens that a request may use now."""
    maximum: int | None = None
    """Window if loaded with its maximum; at least ``window``."""
    max_output: int | None = None
    images: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    where: str = ""
    """Path of the request that returned it."""
    server: str = ""
    """The server's owner field for its models, which names the program on local servers."""
    chats: bool | None = None
    """Whether it answers messages."""
    slots: bool | None = None
    """Whether it tells at ``/slots`` which of its slots work on requests."""
    answering: str = ""
    """The server's only model, which answers to any name, if the one that was asked for is called otherwise."""


def is_known_program(model: EndpointModel) -> bool:
    """Whether the description comes from a program that keeps what it has evaluated, also of an aborted request:
    llama.cpp, Ollama, LM Studio, vLLM, SGLang."""
    known = PROGRAMS.get(model.server)
    return known.keeps_prompt if known is not None else model.where in (PROPS, SHOW, RUNNING)


LIST, TAGS = "/v1/models", "/api/tags"
"""OpenAI's list of models, and Ollama's."""
PROPS, SHOW, RUNNING = "/props", "/api/show", "/api/ps"
LOADED, LENGTH = "/v1/model", "/api/extra/true_max_context_length"
"""Paths of llama.cpp and Ollama, and of TabbyAPI and KoboldCpp, whose answers have a form of their own; any gateway may
answer at others."""
_LM_STUDIO, _LM_STUDIO_NEXT = "/api/v0/models", "/api/v1/models"
_LITELLM, _LOCALAI = "/v1/model/info", "/v1/models/capabilities"


class Program(Struct, frozen=True):
    """A known server program. ``ways`` are the paths at which it describes a model beyond OpenAI's list, the next one
    for versions that lack the first."""

    ways: tuple[str, ...] = ()
    more: str = ""
    """The path that says what its list lacks of all its models at once, if it has one."""
    keeps_prompt: bool = True
    """Whether it keeps what it has evaluated of an aborted request, and begins the next one at once."""


PROGRAMS: Mapping[str, Program] = {
    "llamacpp": Program((PROPS,), PROPS),
    "organization_owner": Program((_LM_STUDIO, _LM_STUDIO_NEXT), _LM_STUDIO),
    "library": Program((SHOW,)),  # Ollama
    "vllm": Program(),
    "sglang": Program(),
    "koboldcpp": Program((LENGTH,), keeps_prompt=False),
    "tabbyAPI": Program((LOADED,), keeps_prompt=False),
    "docker": Program(keeps_prompt=False),
    "lemonade": Program(keeps_prompt=False),
}
"""By what the program writes as the owner of its models."""


def owner_of(models: Sequence[EndpointModel]) -> str:
    """The program that sent a list, as a key of ``PROGRAMS``; empty if the list does not say."""
    return next((model.server for model in models if model.server in PROGRAMS), "")


def ways_of_unknown(models: Sequence[EndpointModel]) -> tuple[str, ...]:
    """Where a program that its list does not name may describe a model, the likeliest path first."""
    if any(":" in model.id for model in models):  # Ollama, whose owners are those of its library
        return (SHOW,)
    if not any(model.server for model in models):
        return (_LOCALAI, PROPS)
    return (_LITELLM, PROPS) if any(model.server == "openai" for model in models) else (PROPS, _LITELLM)


LONGEST_NAME = 256
"""Characters. A longer id, or one with control characters, is no name of a model."""


def read_models(value: object, where: str) -> tuple[EndpointModel, ...]:
    """The models of a listing: OpenAI's format and its many extensions, Anthropic, Gemini, Ollama, LM Studio. Entries
    without a valid id are omitted."""
    outer = as_object(value)
    items = value if is_list(value) else outer.get("data") if is_list(outer.get("data")) else outer.get("models")
    read = [(model, as_object(item)) for item in as_list(items) if (model := read_model(item, where)) is not None]
    windows = {model.id: model.window for model, _ in read}
    return tuple(  # an adapter of vLLM has the window of the model that it is loaded on
        replace(model, window=windows.get(as_text(item.get("parent")))) if model.window is None else model
        for model, item in read
    )


def read_model(value: object, where: str) -> EndpointModel | None:
    """One model of a listing, or a model requested by name."""
    if not is_object(value):
        return None
    name = next((text for key in ("id", "key", "model", "name", "model_name") if (text := as_text(value.get(key)))), "")
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        return None
    meta, top = as_object(value.get("meta")), as_object(value.get("top_provider"))
    loaded = [as_object(as_object(item).get("config")) for item in as_list(value.get("loaded_instances"))]
    windows = [
        *(tokens(item.get("context_length")) for item in loaded),
        tokens(meta.get("n_ctx")),
        *(tokens(nest.get(key)) for nest in _nests(value) for key in _WINDOW_FIELDS),
        min((size for host in _live(value) if (size := tokens(host.get("context_length")))), default=None),
    ]
    maxima = (tokens(value.get(key)) for key in ("max_context_length", "max_context_window"))
    maximum = next((size for size in maxima if size is not None), None) or tokens(meta.get("n_ctx_train"))
    if _is_lm_studio(value):
        windows = [tokens(value.get("loaded_context_length")), *(tokens(item.get("context_length")) for item in loaded)]
    window = next((size for size in windows if size is not None), None)
    smaller = tokens(top.get("context_length"))
    if window is not None and smaller is not None:
        window = min(window, smaller)
    outputs = [
        tokens(top.get("max_completion_tokens")),
        *(tokens(nest.get(key)) for nest in _nests(value) for key in _OUTPUT_FIELDS),
    ]
    if tokens(value.get("max_input_tokens")) is not None:
        outputs.append(tokens(value.get("max_tokens")))
    return EndpointModel(
        name.removeprefix("models/"),
        window,
        max(maximum, window) if maximum is not None and window is not None else maximum,
        next((size for size in outputs if size is not None), None),
        _images(value),
        _tools(value),
        _reasoning(value),
        where,
        as_text(value.get("owned_by")),
        _chats(value),
    )


def read_props(value: object, where: str) -> EndpointModel | None:
    """llama.cpp's description of its loaded model: the window of one slot, which limits a request, and whether its chat
    template has a place for tools; without one they are dropped before the model sees them."""
    props = as_object(value)
    settings = as_object(props.get("default_generation_settings"))
    window = tokens(settings.get("n_ctx")) or tokens(as_object(settings.get("params")).get("n_ctx"))
    if window is None:
        return None
    name = as_text(props.get("model_alias")) or as_text(props.get("model_path")).rpartition("/")[2]
    vision = as_object(props.get("modalities")).get("vision")
    tools = as_object(props.get("chat_template_caps")).get("supports_tools")
    slots = _flag(props.get("endpoint_slots"))
    return EndpointModel(name, window, images=_flag(vision), tools=_flag(tools), where=where, slots=slots)


def read_length(value: object, model: str, where: str) -> EndpointModel | None:
    """KoboldCpp's window."""
    window = tokens(as_object(value).get("value"))
    return EndpointModel(model, window, where=where) if window is not None else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def read_ollama(shown: object, running: object, model: str, settable: int = 0) -> EndpointModel | None:
    """Ollama: the model's maximum (``/api/show``), and the window it is loaded with (``/api/ps``), else the one in its
    own file.

    If each request names its window (``settable`` > 0), the loaded window counts only if it is at least ``settable``: a
    smaller one is just the server's default.
    """
    info, details = as_object(shown), as_object(as_object(shown).get("model_info"))
    maximum = tokens(details.get(f"{as_text(details.get('general.architecture'))}.context_length"))
    if maximum is None:
        sizes = (tokens(size) for key, size in details.items() if key.endswith(".context_length"))
        maximum = next((size for size in sizes if size is not None), None)
    asked, loaded = _parameter(as_text(info.get("parameters")), "num_ctx"), _running_window(running, model)
    if settable and (asked is not None or (loaded is not None and loaded < min(settable, maximum or settable))):
        loaded = None
    window = loaded if loaded is not None else asked
    if window is not None and maximum is not None:
        window = min(window, maximum)
    words = info.get("capabilities")
    if window is None and maximum is None and not is_list(words):
        return None
    where = "/api/ps" if loaded is not None else "/api/show"
    return EndpointModel(
        model, window, maximum, None, _word(words, "vision"), _word(words, "tools"), _word(words, "thinking"), where
    )


def pick(models: Sequence[EndpointModel], name: str, only_one: bool = False) -> EndpointModel | None:
    """The model called ``name``: exactly, in another case, with Ollama's tag, or at the end of a path. With
    ``only_one``, a single model matches any name: such a server ignores it."""
    lowered = name.lower()
    untagged = lowered.removesuffix(":latest")
    kinds = (
        [model for model in models if model.id == name],
        [model for model in models if model.id.lower() == lowered],
        [model for model in models if model.id.lower().removesuffix(":latest") == untagged],
        [model for model in models if model.id.lower().endswith(f"/{lowered}")],
    )
    if match := next((kind[0] for kind in kinds if kind), None):
        return match
    return models[0] if only_one and len(models) == 1 else None


def merge(models: Iterable[EndpointModel | None]) -> EndpointModel | None:
    """One model from several answers about it: each field from the first answer that has it. ``where`` belongs to the
    window."""
    known = [model for model in models if model is not None]
    if not known:
        return None
    merged = next((model for model in known if model.window is not None), known[0])
    for other in known:
        missing = {
            name: getattr(other, name)
            for name in EndpointModel.__struct_fields__
            if getattr(merged, name) is None and getattr(other, name) is not None
        }
        merged = replace(merged, **missing)
    return merged


def tokens(value: object) -> int | None:
    """A size in tokens; None if implausible."""
    number = as_int(value)
    return number if number is not None and _SMALLEST <= number <= _LARGEST else None


def _is_lm_studio(item: JsonObject) -> bool:
    """Whether LM Studio sent this; its ``max_context_length`` is the maximum, not the loaded window."""
    return "loaded_context_length" in item or "loaded_instances" in item or as_text(item.get("state")) in _LM_STATES


_LM_STATES = ("loaded", "not-loaded")


def _running_window(running: object, model: str) -> int | None:
    items = [as_object(item) for item in as_list(as_object(running).get("models"))]
    named = [EndpointModel(as_text(item.get("model")) or as_text(item.get("name"))) for item in items]
    match = pick(named, model)
    return tokens(items[named.index(match)].get("context_length")) if match is not None else None


def _parameter(text: str, name: str) -> int | None:
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name and words[1].isascii() and words[1].isdigit() and len(words[1]) < 12:
            return tokens(int(words[1]))
    return None


def _is_labelled(item: JsonObject, *labels: str) -> bool:
    """Lemonade: whether a model has one of these labels; it may be able to do what it is not labelled with."""
    return any(label in as_list(item.get("labels")) for label in labels)


def _images(item: JsonObject) -> bool | None:
    inner = as_object(item.get("architecture"))
    for kinds in (inner.get("input_modalities"), item.get("input_modalities"), item.get("supported_input_modalities")):
        if is_list(kinds):
            return "image" in kinds
    if as_text(item.get("type")) == "vlm" or _is_labelled(item, "vision"):
        return True
    return _first(item, ("supports_image_input", "supports_vision", "supportsVision"), ("vision", "image_input"))


def _tools(item: JsonObject) -> bool | None:
    for key in ("supported_parameters", "supported_features"):
        if is_list(words := item.get(key)):
            return "tools" in words
    if _is_labelled(item, "tool-calling"):
        return True
    if hosts := [flag for host in _live(item) if isinstance(flag := host.get("supports_tools"), bool)]:
        return any(hosts)
    flags = ("supports_tools", "supports_function_calling", "supportsFunctionCalling", "supports_tool_calling")
    words = ("function_calling", "tools", "tool_use", "trained_for_tool_use", "tool_calls", "tool-calling")
    return _first(item, flags, words)


def _reasoning(item: JsonObject) -> bool | None:
    for key in ("supported_parameters", "supported_features"):
        if is_list(words := item.get(key)):
            return "reasoning" in words
    if _is_labelled(item, "reasoning"):
        return True
    return _first(item, ("thinking", "supports_reasoning", "supportsReasoning"), ("thinking", "reasoning"))


_CHATTING = ("chat", "text", "language", "code", "llm", "vlm")
_NOT_CHATTING = ("embedding", "embeddings", "image", "audio", "transcribe", "moderation", "rerank", "video")
_NO_CHAT_LABELS = (*_NOT_CHATTING, "transcription", "reranking", "tts", "audio-generation", "classification", "3d")


def _chats(item: JsonObject) -> bool | None:
    """Whether the model answers messages, as the servers of OpenRouter, Groq, Mistral, Gemini, Ollama, LM Studio,
    Together and Lemonade state it."""
    inner = as_object(item.get("architecture"))
    for kinds in (
        inner.get("output_modalities"),
        item.get("output_modalities"),
        item.get("supported_output_modalities"),
    ):
        if is_list(kinds):
            return "text" in kinds
    if isinstance(answers := as_object(item.get("capabilities")).get("completion_chat"), bool):
        return answers
    methods = item.get("supportedGenerationMethods")
    if is_list(methods) and "generateContent" not in methods:
        return False  # models of images and speech have this method as well
    if as_text(as_object(item.get("details")).get("family")).endswith("bert") or _is_labelled(item, *_NO_CHAT_LABELS):
        return False
    kind = as_text(as_object(item.get("capabilities")).get("type")) or as_text(item.get("type"))
    return True if kind in _CHATTING else False if kind in _NOT_CHATTING else None


def _first(item: JsonObject, flags: Iterable[str], capabilities: Iterable[str]) -> bool | None:
    """A flag of the model, or one of its capabilities, which are a list of words or an object."""
    for value in (nest.get(name) for nest in _nests(item) for name in flags):
        if isinstance(value, bool):
            return value
    words = item.get("capabilities")
    words = as_object(words).get("supports", words)
    answers = [_word(words, name) for name in capabilities]
    return True if True in answers else next((answer for answer in answers if answer is not None), None)


def _word(capabilities: object, name: str) -> bool | None:
    if is_list(capabilities):
        return name in capabilities
    value = as_object(capabilities).get(name)
    value = as_object(value).get("supported") if is_object(value) else value
    return value if isinstance(value, bool) else None
