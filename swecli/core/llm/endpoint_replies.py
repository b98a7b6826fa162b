"""What servers say of their models, in the many forms they say it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

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
)
_OUTPUT_FIELDS = ("max_completion_tokens", "max_output_tokens", "outputTokenLimit")


@dataclass(frozen=True, slots=True)
class EndpointModel:
    """A model as its server describes it. None = the server does not say; sizes are tokens."""

    id: str
    window: int | None = None
    """What a request may fill now."""
    maximum: int | None = None
    """What the model could do if it were loaded so; at least ``window``."""
    max_output: int | None = None
    images: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    where: str = ""
    """The path that was asked."""
    server: str = ""
    """What the server calls the owner of its models, which names the program on local servers."""


def read_models(value: object, where: str) -> tuple[EndpointModel, ...]:
    """The models of a listing: OpenAI's form and what its many followers add, Anthropic, Gemini, Ollama, LM Studio.
    Whatever has no id is left out."""
    outer = as_object(value)
    items = value if is_list(value) else outer.get("data") if is_list(outer.get("data")) else outer.get("models")
    return tuple(model for item in as_list(items) if (model := read_model(item, where)) is not None)


def read_model(value: object, where: str) -> EndpointModel | None:
    """One model of a listing, or a model that was asked for by name."""
    if not is_object(value):
        return None
    name = next((text for key in ("id", "key", "model", "name") if (text := as_text(value.get(key)))), "")
    if not name:
        return None
    meta, top = as_object(value.get("meta")), as_object(value.get("top_provider"))
    loaded = [as_object(as_object(item).get("config")) for item in as_list(value.get("loaded_instances"))]
    windows = [
        *(tokens(item.get("context_length")) for item in loaded),
        tokens(meta.get("n_ctx")),
        *(tokens(value.get(key)) for key in _WINDOW_FIELDS),
    ]
    maximum = tokens(value.get("max_context_length")) or tokens(meta.get("n_ctx_train"))
    if _is_lm_studio(value):
        windows = [tokens(value.get("loaded_context_length")), *(tokens(item.get("context_length")) for item in loaded)]
    window = next((size for size in windows if size is not None), None)
    smaller = tokens(top.get("context_length"))
    if window is not None and smaller is not None:
        window = min(window, smaller)
    outputs = [tokens(top.get("max_completion_tokens")), *(tokens(value.get(key)) for key in _OUTPUT_FIELDS)]
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
    )


def read_props(value: object, where: str) -> EndpointModel | None:
    """llama.cpp's own description of what it runs: the window of one slot, which is what a request may fill."""
    props = as_object(value)
    settings = as_object(props.get("default_generation_settings"))
    window = tokens(settings.get("n_ctx")) or tokens(as_object(settings.get("params")).get("n_ctx"))
    if window is None:
        return None
    name = as_text(props.get("model_alias")) or as_text(props.get("model_path")).rpartition("/")[2]
    vision = as_object(props.get("modalities")).get("vision")
    return EndpointModel(name, window, images=vision if isinstance(vision, bool) else None, where=where)


def read_ollama(shown: object, running: object, model: str, settable: int = 0) -> EndpointModel | None:
    """Ollama: what the model can do (``/api/show``), and the window it is loaded with (``/api/ps``), else the one
    that its own file asks for.

    Where each request names the window it wants (``settable`` > 0), the one that somebody else loaded the model
    with binds only if it is at least ``settable``: a smaller one is just the server's default.
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
    ``only_one``, a single model is the one whatever it is called: such a server runs it for any name."""
    lowered = name.lower()
    untagged = lowered.removesuffix(":latest")
    kinds = (
        [model for model in models if model.id == name],
        [model for model in models if model.id.lower() == lowered],
        [model for model in models if model.id.lower().removesuffix(":latest") == untagged],
        [model for model in models if model.id.lower().endswith(f"/{lowered}")],
    )
    if found := next((kind[0] for kind in kinds if kind), None):
        return found
    return models[0] if only_one and len(models) == 1 else None


def merge(models: Iterable[EndpointModel | None]) -> EndpointModel | None:
    """One model from several answers about it: of each field what the first says that says anything. ``where``
    belongs to the window."""
    known = [model for model in models if model is not None]
    if not known:
        return None
    merged = next((model for model in known if model.window is not None), known[0])
    for other in known:
        missing = {
            item.name: getattr(other, item.name)
            for item in fields(EndpointModel)
            if getattr(merged, item.name) is None and getattr(other, item.name) is not None
        }
        merged = replace(merged, **missing)
    return merged


def tokens(value: object) -> int | None:
    """A size in tokens; None for anything that can't be one."""
    number = as_int(value)
    return number if number is not None and _SMALLEST <= number <= _LARGEST else None


def _is_lm_studio(item: JsonObject) -> bool:
    """There, ``max_context_length`` is what the model could do, not what it was loaded with."""
    return "loaded_context_length" in item or "loaded_instances" in item or as_text(item.get("state")) in _LM_STATES


_LM_STATES = ("loaded", "not-loaded")


def _running_window(running: object, model: str) -> int | None:
    items = [as_object(item) for item in as_list(as_object(running).get("models"))]
    named = [EndpointModel(as_text(item.get("model")) or as_text(item.get("name"))) for item in items]
    found = pick(named, model)
    return tokens(items[named.index(found)].get("context_length")) if found is not None else None


def _parameter(text: str, name: str) -> int | None:
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name and words[1].isascii() and words[1].isdigit() and len(words[1]) < 12:
            return tokens(int(words[1]))
    return None


def _images(item: JsonObject) -> bool | None:
    modalities = as_object(item.get("architecture")).get("input_modalities")
    if is_list(modalities):
        return "image" in modalities
    if as_text(item.get("type")) == "vlm":
        return True
    return _first(item, ("supports_image_input",), ("vision", "image_input"))


def _tools(item: JsonObject) -> bool | None:
    for key in ("supported_parameters", "supported_features"):
        if is_list(words := item.get(key)):
            return "tools" in words
    return _first(item, ("supports_tools",), ("function_calling", "tools", "tool_use", "trained_for_tool_use"))


def _reasoning(item: JsonObject) -> bool | None:
    for key in ("supported_parameters", "supported_features"):
        if is_list(words := item.get(key)):
            return "reasoning" in words
    return _first(item, ("thinking",), ("thinking", "reasoning"))


def _first(item: JsonObject, flags: Iterable[str], capabilities: Iterable[str]) -> bool | None:
    """A flag of the model, or one of its capabilities, which are a list of words or an object."""
    for name in flags:
        if isinstance(value := item.get(name), bool):
            return value
    words = item.get("capabilities")
    answers = [_word(words, name) for name in capabilities]
    return True if True in answers else next((answer for answer in answers if answer is not None), None)


def _word(capabilities: object, name: str) -> bool | None:
    if is_list(capabilities):
        return name in capabilities
    value = as_object(capabilities).get(name)
    value = as_object(value).get("supported") if is_object(value) else value
    return value if isinstance(value, bool) else None
