"""The base of all settings sections, and the kinds of values that several of them have."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

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

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
