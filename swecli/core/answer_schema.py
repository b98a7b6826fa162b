"""A JSON Schema for the model's last answer: instructions for the model, and validation of the answer."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from swecli.figures import cut
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MOST_PROBLEMS = 5
PATTERN_SECONDS = 10.0
"""Longest time for which an answer is matched with a schema that has patterns, start of a process included."""
_PATTERNS = ("pattern", "patternProperties")
_FENCED = lazy_pattern(r"^(`{3,}|~{3,})[^\n]*\n(.*?)\n\1\s*$", re.DOTALL | re.MULTILINE)


_ELSEWHERE = "the schema refers to something it does not contain"


class SchemaProblem(ValueError):
    """The schema is invalid. The message gives the reason."""


class Mismatch(ValueError):
    """An answer that does not match. The message lists the errors, as clauses."""


class AnswerSchema(Struct, frozen=True):
    """``schema`` is the schema as its author wrote it."""

    schema: Mapping[str, Any]

    @classmethod
    def read(cls, text: str) -> AnswerSchema:
        """The schema of a JSON text.

        Raises:
            SchemaProblem: it is not a JSON object, or not a schema.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SchemaProblem(f"not JSON: {error}") from None
        if not isinstance(value, dict):
            raise SchemaProblem("a schema is a JSON object")
        schema = cls(cast("dict[str, Any]", value))
        schema.check()
        return schema

    def check(self) -> None:
        """Raises ``SchemaProblem`` if it is not a schema, or refers to something that it does not contain."""
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing.exceptions import Unresolvable

        try:
            validator_for(self.schema, default=_latest()).check_schema(dict(self.schema))
            _resolve_references(self.schema)
        except SchemaError as error:
            where = "/".join(str(part) for part in error.absolute_path)
            raise SchemaProblem(f"not a JSON Schema: {error.message}{f' (at {where})' if where else ''}") from None
        except Unresolvable as error:
            raise SchemaProblem(f"{_ELSEWHERE}: {error}") from None
        except RecursionError:
            raise SchemaProblem("not a JSON Schema: nested too deeply") from None

    @property
    def instruction(self) -> str:
        """Instruction for the model from the beginning."""
        text = json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))
        return (
            "When your work is done, your last message must be one JSON value that matches this JSON Schema, and "
            f"nothing else: no explanation and no code fence.\n{text}"
        )

    def repair(self, mismatch: Mismatch) -> str:
        """Instruction for the model after an answer that does not match."""
        return (
            f"Your last message does not match the required JSON Schema: {mismatch}. Send only the corrected JSON "
            "value. Do no further work."
        )

    async def value(self, answer: str) -> Any:
        """The value of an answer: all of it, or its last fenced block. The event loop goes on while it is checked; a
        schema with patterns, which may take for ever, is left to another process.

        Raises:
            Mismatch: it is not JSON, or does not match the schema.
        """
        value = _parsed(answer)
        apart = _has_patterns(self.schema)
        told = await (_told_apart(self.schema, value) if apart else asyncio.to_thread(problems, self.schema, value))
        if told:
            raise Mismatch(told)
        return value


def problems(schema: Mapping[str, Any], value: object) -> str:
    """How the value violates the schema, as clauses; empty if it does not."""
    from jsonschema import validators
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    made: Any = validators
    registry: Registry[Any] = Registry()  # fetches nothing
    kind = made.extend(made.validator_for(schema, default=_latest()), {"multipleOf": _multiple})
    try:
        violations = cast("Iterable[ValidationError]", kind(schema, registry=registry).iter_errors(value))
        errors = sorted(violations, key=lambda error: [str(part) for part in error.absolute_path])
    except Unresolvable as error:
        return f"{_ELSEWHERE}: {error}"
    except RecursionError:
        return "it is nested too deeply"
    clauses = [_clause(error) for error in errors[:MOST_PROBLEMS]]
    return "; ".join(clauses) + (f"; and {len(errors) - MOST_PROBLEMS} more" if errors[MOST_PROBLEMS:] else "")


def _has_patterns(part: object) -> bool:
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if not part.keys().isdisjoint(_PATTERNS):
                return True
            waiting += cast("dict[str, object]", part).values()
        elif isinstance(part, list):
            waiting += cast("list[object]", part)
    return False


async def _told_apart(schema: Mapping[str, Any], value: object) -> str:
    """``problems``, found by another process that can be ended. A cancellation ends it, too."""
    import os

    folders = [folder for folder in sys.path if os.path.isabs(folder)]
    boot = f"import sys;sys.path.extend({folders!r});from swecli.core.answer_schema import main;main()"
    try:
        request = json.dumps([schema, value]).encode()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-X", "utf8", "-c", boot),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except RecursionError:
        return "it is nested too deeply"
    except OSError as error:
        return f"it could not be checked: no process for it can start ({error.strerror or error})"
    try:
        output, _ = await asyncio.wait_for(process.communicate(request), PATTERN_SECONDS)
    except TimeoutError:
        return f"the schema's patterns take longer than {PATTERN_SECONDS:g} s on it"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        return f"it could not be checked: the process that does so ended with status {process.returncode}"
    return json.loads(output)


def main() -> None:
    """The other process: reads schema and value, writes the problems."""
    schema, value = json.load(sys.stdin)
    json.dump(problems(schema, value), sys.stdout)


def _latest() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator


def _resolve_references(schema: Mapping[str, Any]) -> None:
    """Raises ``Unresolvable`` for the first reference without a target. Fetches nothing."""
    from jsonschema_specifications import REGISTRY  # pyright: ignore[reportMissingTypeStubs]
    from referencing import Resource
    from referencing.jsonschema import DRAFT202012, specification_with

    dialect: Any = specification_with(str(schema.get("$schema", "")), default=DRAFT202012)
    root: Resource[Any] = Resource(schema, dialect)
    waiting, seen = [(root, REGISTRY.resolver_with_root(root))], set[int]()
    while waiting:
        resource, resolver = waiting.pop()
        part = resource.contents
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict) and isinstance(reference := cast("dict[str, Any]", part).get("$ref"), str):
            resolved = resolver.lookup(reference)
            waiting.append((Resource(resolved.contents, dialect), resolved.resolver))
        waiting += [(inner, resolver.in_subresource(inner)) for inner in resource.subresources()]


def _multiple(validator: Any, step: float, value: object, schema: object) -> Iterator[ValidationError]:
    """``multipleOf`` in decimals: in binary, 0.07 is no multiple of 0.01."""
    from jsonschema.exceptions import ValidationError

    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    with localcontext(prec=1_000):  # the quotient of any two floats
        if Decimal(str(value)) % Decimal(str(step)):
            yield ValidationError(f"{value!r} is not a multiple of {step!r}")


def _clause(error: ValidationError) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    message = cut(error.message, 200)
    return f"{where}: {message}" if where else message


def _parsed(answer: str) -> Any:
    text = answer.strip()
    if not text:
        raise Mismatch("it is empty")
    blocks = [match[2] for match in _FENCED.finditer(text)]
    problem = ""
    for candidate in (text, *blocks[-1:]):
        try:
            return json.loads(candidate, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            problem = problem or str(error)
    raise Mismatch(f"it is not JSON ({problem})")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")
