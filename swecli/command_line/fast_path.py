"""Whether arguments surely lead to the interface, decided before their parser is loaded."""

from __future__ import annotations

TYPE_CHECKING = False  # a type checker takes it for true; the module that has it takes as long as all of this
if TYPE_CHECKING:
    from collections.abc import Sequence

FLAGS = frozenset(("-c", "--continue", "--no-session", "--safe-mode", "--debug", "--trust"))
"""Options without a value that leave it at the interface."""
WITH_VALUE = frozenset(("-m", "--model", "-C", "--cwd", "--add-dir", "--effort", "--base-url", "--settings"))
"""Options with a value that leave it at the interface."""
MAY_HAVE_VALUE = frozenset(("-r", "--resume"))


def surely_interactive(arguments: Sequence[str]) -> bool:
    """Whether these arguments lead to the interface, if they are right and there is a terminal. In doubt: no."""
    rest = list(arguments)
    if rest == ["demo"]:
        return True
    prompts = 0
    while rest:
        argument = rest.pop(0)
        followed = bool(rest and rest[0]) and not rest[0].startswith("-")
        if argument in WITH_VALUE and not followed:
            return False
        if argument in WITH_VALUE or (argument in MAY_HAVE_VALUE and followed):
            rest.pop(0)
        elif not argument.startswith("-"):
            prompts += 1
            if " " not in argument:  # a single word may be a subcommand, a mistyped one, or a folder
                return False
        elif argument not in FLAGS and argument not in MAY_HAVE_VALUE:
            return False
    return prompts <= 1
