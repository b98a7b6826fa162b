"""Data from outside (settings, a model's arguments) as frozen structs, with every problem listed.

Fields and bounds are declared as msgspec knows them. Its own conversion stops at the first problem and knows no checks
beyond bounds, and its schemas sort the choices; so the declared types are walked here.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, TypeVar, Union, cast, dataclass_transform, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo

C = TypeVar("C", bound="Checked")


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Checked(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of such structs. The constructor checks nothing; ``validated`` does."""

    def problem(self) -> str:
        """A clause about fields that do not fit together; empty if they do. A missing field is None here."""
        return ""


class Problem(Struct, frozen=True):
    """One problem. ``place`` leads to the value by keys and indexes; ``message`` is a clause about it."""

    place: tuple[str, ...]
    kind: Literal["missing", "unknown", "list", "value"]
    """``list``: the value is none but must be."""
    message: str
    given: object = None


class InvalidError(ValueError):
    """The data do not fit. All problems are listed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{'.'.join(problem.place) or 'value'} {problem.message}" for problem in problems))


def check(accept: Callable[[Any], object], before: Callable[[object], object] | None = None) -> Meta:
    """A further check of a value, for ``Annotated``. ``accept`` returns the value to keep, and raises ``ValueError``
    with a clause if there is none; ``before`` changes what was given before its type is checked."""
    return Meta(extra={"accept": accept, "before": before})


def validated(kind: type[C], given: object, *, lenient: bool = False) -> C:
    """``given`` as a ``kind``. Only ``lenient`` converts between numbers, texts and booleans where the meaning is
    clear, as models need it.

    Raises:
        InvalidError: it does not fit.
    """
    problems: list[Problem] = []
    result = _Walk(lenient, problems).struct(kind, given, ())
    if problems or result is None:
        raise InvalidError(problems)
    return result


def fields_of(value: Struct) -> Iterator[tuple[str, Any]]:
    """Names and values of the fields, in order."""
    for name in value.__struct_fields__:
        yield name, getattr(value, name)


def default_of(kind: type[Struct], name: str) -> Any:
    """Default of a field; None for a required or unknown one."""
    field = fields_by_name(kind).get(name)
    if field is None or field.required:
        return None
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return cast("Callable[[], Any]", field.default_factory)()


@cache
def fields_by_name(kind: type[Struct]) -> Mapping[str, FieldInfo]:
    """What msgspec knows about each field, with its declared type."""
    return {field.name: field for field in msgspec.structs.fields(kind)}


@cache
def types_by_name(kind: type[Struct]) -> Mapping[str, DeclaredType]:
    """The declared type of each field, taken apart once for all values."""
    return {name: declared(field.type) for name, field in fields_by_name(kind).items()}


def changed(value: Struct) -> dict[str, Any]:
    """The fields that differ from their defaults, nested ones too, as they would be written."""
    fields: dict[str, Any] = {}
    for field in fields_by_name(type(value)).values():
        field_value = getattr(value, field.name)
        if field.required or field_value != default_of(type(value), field.name):
            fields[field.encode_name] = _changed_in(field_value)
    return fields


def _changed_in(value: object) -> Any:
    if isinstance(value, Struct):
        return changed(value)
    if _is_list(value):
        return [_changed_in(item) for item in value]
    return msgspec.to_builtins(value)


class DeclaredType(Struct, frozen=True):
    """A declared type. ``of`` is a class, list, tuple, dict, Literal, Union or Any; ``within`` its types or choices."""

    of: Any
    within: tuple[Any, ...]
    metas: tuple[Meta, ...]

    @property
    def description(self) -> str:
        return next((meta.description for meta in self.metas if meta.description), "")

    @property
    def optional(self) -> bool:
        return self.of is Union and type(None) in self.within

    @property
    def variants(self) -> tuple[Any, ...]:
        """The types of a union, None aside."""
        return tuple(variant for variant in self.within if variant is not type(None))

    @property
    def entry(self) -> Any:
        """Type of the entries of a list, or of a tuple of any length."""
        return self.within[0]

    @property
    def is_fixed(self) -> bool:
        """Whether it is a tuple of a fixed length."""
        return self.of is tuple and self.within[-1:] != (...,)

    @property
    def is_list(self) -> bool:
        """Whether it, or one of a union, is a list."""
        return self.of in (list, tuple) or any(
            declared(variant).is_list for variant in self.variants if self.of is Union
        )

    @property
    def is_struct(self) -> bool:
        return isinstance(self.of, type) and issubclass(self.of, Struct)

    def bound(self, name: str) -> Any:
        """The value of a bound such as ``ge`` or ``max_length``; None if there is none."""
        return next((limit for meta in self.metas if (limit := getattr(meta, name)) is not None), None)

    def check(self, name: str) -> Callable[[Any], Any] | None:
        return next((function for meta in self.metas if meta.extra and (function := meta.extra.get(name))), None)


def declared(annotation: Any) -> DeclaredType:
    """The parts of a declared type."""
    metas: tuple[Meta, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metas = tuple(meta for meta in more if isinstance(meta, Meta))
    origin = get_origin(annotation)
    if origin is types.UnionType:
        origin = Union
    return DeclaredType(annotation if origin is None else origin, get_args(annotation), metas)


class _Wrong(Exception):
    """The value does not fit; the problems are already listed."""


_TRUE = frozenset(("true", "t", "1", "yes", "y", "on"))
_FALSE = frozenset(("false", "f", "0", "no", "n", "off"))


def yes_or_no(text: str) -> bool | None:
    """What a word such as "on" says; None for any other."""
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


class _Walk:
    """One walk over data. Problems are appended to ``problems``."""

    def __init__(self, lenient: bool, problems: list[Problem]) -> None:
        self._lenient = lenient
        self._problems = problems

    def struct(self, kind: type[C], given: object, path: tuple[str, ...]) -> C | None:
        """The struct; None if there were problems."""
        if isinstance(given, kind):
            return given
        if not isinstance(given, Mapping):
            self._problems.append(Problem(path, "value", "must be a table", given))
            return None
        table = cast("Mapping[str, object]", given)
        before = len(self._problems)
        values: dict[str, Any] = {}
        wrong = False
        fields, kinds = fields_by_name(kind).values(), types_by_name(kind)
        for field in fields:
            at = (*path, field.encode_name)
            if field.encode_name in table:
                try:
                    values[field.name] = self._value(kinds[field.name], table[field.encode_name], at)
                except _Wrong:
                    wrong = True
            elif field.required:
                self._problems.append(Problem(at, "missing", "must be given too"))
                values[field.name] = None  # only for ``problem``
        known = {field.encode_name for field in fields}
        self._problems += [
            Problem((*path, str(name)), "unknown", "must not be here: unknown key", table[name])
            for name in table
            if name not in known
        ]
        if wrong:
            return None
        result = kind(**values)
        if message := result.problem():
            self._problems.append(Problem(path, "value", message, table))
        return None if len(self._problems) > before else result

    def _refuse(
        self,
        path: tuple[str, ...],
        given: object,
        message: str,
        kind: Literal["list", "value"] = "value",
    ) -> _Wrong:
        self._problems.append(Problem(path, kind, message, given))
        return _Wrong()

    def _value(self, kind: DeclaredType, given: object, path: tuple[str, ...]) -> Any:
        """The value.

        Raises:
            _Wrong: it does not fit.
        """
        if before := kind.check("before"):
            given = before(given)
        value = self._of_type(kind, given, path)
        if message := _outside(kind, value):
            raise self._refuse(path, given, message)
        if accept := kind.check("accept"):
            try:
                return accept(value)
            except ValueError as error:
                raise self._refuse(path, given, str(error)) from None
        return value

    def _of_type(self, kind: DeclaredType, given: object, path: tuple[str, ...]) -> Any:
        if kind.is_struct:
            result = self.struct(kind.of, given, path)
            if result is None:
                raise _Wrong
            return result
        if kind.of is Union:
            return self._one_of(kind, given, path)
        if kind.is_fixed:
            return self._fixed(kind, given, path)
        if kind.of in (list, tuple):
            entries = self._entries(kind, given, path)
            return entries if kind.of is list else tuple(entries)
        if kind.of is dict:
            return self._table(kind, given, path)
        value = _converted(kind.of, given) if self._lenient and not _is_of(kind, given) else given
        if kind.of is float and isinstance(value, int) and not isinstance(value, bool):
            value = _as_float(value)
        if not _is_of(kind, value):
            raise self._refuse(path, given, f"must be {_words(kind)}")
        return value

    def _one_of(self, kind: DeclaredType, given: object, path: tuple[str, ...]) -> Any:
        """The value as the first of the types that fits; exact types go before converted ones."""
        if given is None and kind.optional:
            return None
        variants = [declared(variant) for variant in kind.variants]
        fitting = [variant for variant in variants if _is_of(variant, given)] or variants
        if len(fitting) == 1:
            return self._value(fitting[0], given, path)
        for variant in fitting:
            try:
                return _Walk(self._lenient, [])._value(variant, given, path)
            except _Wrong:
                continue
        raise self._refuse(path, given, f"must be {' or '.join(map(_words, fitting))}")

    def _entries(self, kind: DeclaredType, given: object, path: tuple[str, ...]) -> list[Any]:
        if not _is_list(given):
            raise self._refuse(path, given, "must be a list", "list")
        entry = declared(kind.entry)
        values: list[Any] = []
        wrong = False
        for number, item in enumerate(given):
            try:
                values.append(self._value(entry, item, (*path, str(number))))
            except _Wrong:
                wrong = True
        if wrong:
            raise _Wrong
        return values

    def _fixed(self, kind: DeclaredType, given: object, path: tuple[str, ...]) -> tuple[Any, ...]:
        if not _is_list(given) or len(given) != len(kind.within):
            raise self._refuse(path, given, f"must be {_words(kind)}", "list")
        pairs = zip(map(declared, kind.within), given, strict=True)
        return tuple(self._value(entry, value, (*path, str(number))) for number, (entry, value) in enumerate(pairs))

    def _table(self, kind: DeclaredType, given: object, path: tuple[str, ...]) -> dict[Any, Any]:
        if not isinstance(given, Mapping):
            raise self._refuse(path, given, "must be a table")
        of_key, of_value = map(declared, kind.within)
        values: dict[Any, Any] = {}
        wrong = False
        for key, item in cast("Mapping[object, object]", given).items():
            at = (*path, str(key))
            pair: list[Any] = []
            for of, part in ((of_key, key), (of_value, item)):
                try:
                    pair.append(self._value(of, part, at))
                except _Wrong:
                    wrong = True
            if len(pair) == 2:
                values[pair[0]] = pair[1]
        if wrong:
            raise _Wrong
        return values


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _is_of(kind: DeclaredType, value: object) -> bool:
    """Whether a value has the type, its bounds aside. True is no number."""
    of = kind.of
    if of is Any:
        return True
    if of is Literal:
        return any(type(value) is type(choice) and value == choice for choice in kind.within)
    if of in (list, tuple):
        return _is_list(value)
    if of is dict or kind.is_struct:
        return isinstance(value, Mapping)
    return isinstance(value, of) and (of is bool or not isinstance(value, bool))


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _converted(of: Any, value: object) -> object:
    """The value in the wanted type if its meaning is clear, otherwise unchanged. True never becomes a number: to
    Python it is 1, a limit of one second or the first line."""
    if isinstance(value, bool):
        return value
    if of is str and isinstance(value, int | float):
        return str(value)
    if of is bool and isinstance(value, str) and (flag := yes_or_no(value)) is not None:
        return flag
    if of is bool and value in (0, 1):
        return value == 1
    if of is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if of in (int, float) and isinstance(value, str):
        return _number(value, whole=of is int)
    return value


def _number(text: str, *, whole: bool) -> object:
    try:
        value = float(text)
        if not whole:
            return value
        return int(text) if text.strip().lstrip("+-").isdecimal() else int(value) if value.is_integer() else text
    except (ValueError, OverflowError):
        return text


_LIMITS: tuple[tuple[str, Callable[[float, float], bool], str, str], ...] = (
    ("ge", lambda value, bound: value >= bound, "at least", "from"),
    ("gt", lambda value, bound: value > bound, "greater than", "above"),
    ("le", lambda value, bound: value <= bound, "at most", "to"),
    ("lt", lambda value, bound: value < bound, "less than", "below"),
)
"""Name of a bound of numbers, whether a value holds it, and its words in an error and in a description."""


_MOST_WHOLE = 2**63 - 1
"""TOML promises no larger whole numbers, and the largest ones fit no float or size of a file."""


def _outside(kind: DeclaredType, value: Any) -> str:
    """Which bound the value exceeds, as a clause; empty if none."""
    if isinstance(value, bool) or kind.of is Any:
        return ""
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            return "must be a finite number"
        if isinstance(value, int) and not -_MOST_WHOLE <= value <= _MOST_WHOLE:
            return f"must be at most {_MOST_WHOLE:,}" if value > 0 else f"must be at least {-_MOST_WHOLE:,}"
        for name, holds, words, _ in _LIMITS:
            bound = kind.bound(name)
            if bound is not None and not holds(value, bound):
                return f"must be {words} {_figure(bound)}"
        return ""
    least, most = kind.bound("min_length"), kind.bound("max_length")
    if least is not None and len(value) < least:
        return "must not be empty" if least == 1 else f"must have at least {least:,} {_unit(value)}"
    if most is not None and len(value) > most:
        return f"must have at most {most:,} {_unit(value)}"
    return ""


def _figure(bound: float) -> str:
    return f"{bound:,g}" if isinstance(bound, float) else f"{bound:,}"


def _unit(value: object) -> str:
    return "characters" if isinstance(value, str) else "entries"


def in_words(annotation: Any) -> str:
    """Allowed values of a declared type, in words."""
    return _words(declared(annotation))


def _words(kind: DeclaredType) -> str:
    of = kind.of
    if of in (int, float):
        limits = [f"{word} {_figure(kind.bound(name))}" for name, _, _, word in _LIMITS if kind.bound(name) is not None]
        return " ".join(("a whole number" if of is int else "a number", *limits))
    if of is Literal:
        return "one of " + ", ".join(json.dumps(choice, ensure_ascii=False) for choice in kind.within)
    if of is Union:
        return " or ".join(in_words(variant) for variant in kind.variants)
    if kind.is_fixed:
        return f"a list of {len(kind.within)} entries"
    if of in (list, tuple):
        return f"a list, each {in_words(kind.entry)}"
    return {bool: "true or false", str: "text"}.get(of, "a table")


def choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a declared type that allows only a few; empty for others."""
    kind = declared(annotation)
    if kind.of is Union:
        return choices(kind.variants[0]) if len(kind.variants) == 1 else ()
    if kind.of is Literal:
        return kind.within
    return (True, False) if kind.of is bool else ()


_JSON_TYPES: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


@cache
def compact_schema(kind: type[Struct]) -> Mapping[str, Any]:
    """JSON Schema object of a struct for a model: types, choices and descriptions of its fields. Without defaults,
    which the descriptions name, and without bounds, which some providers refuse and ``validated`` checks."""
    fields = fields_by_name(kind).values()
    required = [field.encode_name for field in fields if field.required]
    return {
        "properties": {field.encode_name: _schema(field.type) for field in fields},
        **({"required": required} if required else {}),
        "type": "object",
    }


def _schema(annotation: Any) -> dict[str, Any]:
    kind = declared(annotation)
    about = {"description": kind.description} if kind.description else {}
    if kind.is_struct:
        return {**about, **compact_schema(kind.of)}
    if kind.of is Union:
        some = [_schema(variant) for variant in kind.variants]
        return {**some[0], **about} if len(some) == 1 else {**about, "anyOf": some}
    if kind.of is Literal:
        return {**about, "enum": list(kind.within), "type": "string"}
    if kind.is_fixed:
        return {**about, "items": _schema(kind.within[0]), "type": "array"}
    if kind.of in (list, tuple):
        return {**about, "items": _schema(kind.entry), "type": "array"}
    return {**about, **({"type": _JSON_TYPES[kind.of]} if kind.of in _JSON_TYPES else {"type": "object"})}
