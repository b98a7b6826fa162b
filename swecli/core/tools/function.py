"""Python functions as tools: the signature is the schema, the docstring the description."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_json

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import ToolContext, ToolError, ToolOutcome
from swecli.core.tools.dynamic import DynamicTool, RawParams, portable_schema
from swecli.lazy_pattern import lazy_pattern

Function = Callable[..., Any]
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FAILURES = (Exception, SystemExit)
"""Errors of a function that end its call only: the function of a program may exit where its command would."""
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class FunctionTool(DynamicTool):
    """A Python function that the model can call, in this process: a plain function in a thread, a coroutine function on
    the event loop. Its return value (text, or anything with a JSON form) is the result; an exception becomes an error
    that the model can read."""

    def __init__(self, function: Function, *, name: str = "", description: str = "", read_only: bool = False) -> None:
        """``read_only``: the function changes nothing, so plan mode allows it.

        Raises:
            TypeError: the signature is not a list of named parameters, or has types without a JSON form.
        """
        self._function = function
        self._read_only = read_only
        named = name or getattr(function, "__name__", "")
        if not _NAME.fullmatch(named):
            raise TypeError(f"{named!r} cannot be a tool's name; name it with tool(name=…)")
        self._model = _parameters(function, named)
        text = description or inspect.getdoc(function) or named.replace("_", " ")
        try:
            schema = self._model.model_json_schema()
        except PydanticUserError as error:
            raise TypeError(f"{named}: a parameter has no JSON form: {error.message}") from error
        super().__init__(named, text, portable_schema(schema), "", verb="Call", checked=schema)

    def effects(self, params: RawParams, ctx: ToolContext) -> Effects:
        return Effects(external=f"the function {self.name}", vouched=self._read_only)

    async def run(self, params: RawParams, ctx: ToolContext) -> ToolOutcome:
        try:
            validated = self._model.model_validate(params.arguments)
        except ValidationError as error:
            raise ToolError(f"Invalid arguments for {self.name}; nothing was run.\n{error}") from error
        values = {field: getattr(validated, field) for field in type(validated).model_fields}
        if inspect.iscoroutinefunction(self._function):
            try:
                value = await self._function(**values)
            except ToolError:
                raise
            except _FAILURES as error:
                raise self._failure(error) from error
        else:
            value = await asyncio.to_thread(self._call, values)
        return value if isinstance(value, ToolOutcome) else ToolOutcome(_text(value))

    def _call(self, values: dict[str, Any]) -> Any:
        """For a thread. Converts errors there, because a future never ends with a ``StopIteration``."""
        try:
            return self._function(**values)
        except ToolError:
            raise
        except _FAILURES as error:
            raise self._failure(error) from error

    def _failure(self, error: BaseException) -> ToolError:
        return ToolError(f"{self.name} failed: {type(error).__name__}: {error}")


def _parameters(function: Function, name: str) -> type[BaseModel]:
    """A model of the function's parameters."""
    fields: dict[str, Any] = {}
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, ValueError) as error:
        raise TypeError(f"{name}: cannot read its parameters: {error}") from error
    for parameter in signature.parameters.values():
        if parameter.kind in _VARIADIC or parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise TypeError(f"{name}: a tool takes only named parameters, not {parameter}")
        given = parameter.annotation if parameter.annotation is not inspect.Parameter.empty else Any
        fields[parameter.name] = (given, ... if parameter.default is inspect.Parameter.empty else parameter.default)
    try:
        return create_model(name, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=True), **fields)
    except (PydanticUserError, NameError) as error:
        raise TypeError(f"{name}: {error}") from error


def _text(value: object) -> str:
    if value is None:
        return "(no result)"
    if isinstance(value, str):
        return value
    try:
        return to_json(value, fallback=str, indent=None).decode("utf-8")
    except (PydanticSerializationError, ValueError):
        return str(value)


@overload
def tool(function: Function, /) -> FunctionTool: ...


@overload
def tool(*, name: str = "", description: str = "", read_only: bool = False) -> Callable[[Function], FunctionTool]: ...


def tool(
    function: Function | None = None, /, *, name: str = "", description: str = "", read_only: bool = False
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Decorator: turn the function into a tool, optionally with another name or description."""

    def made(given: Function) -> FunctionTool:
        return FunctionTool(given, name=name, description=description, read_only=read_only)

    return made if function is None else made(function)
