"""The environment that commands get: the user's, without secrets and without what changes how programs start."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECRET = re.compile(
    r".*_(KEY|TOKEN|SECRET|PAT|PASSPHRASE|AUTH)S?|.*(PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|SECRET_|_TOKEN_|_KEY_).*"
    r"|.*(APIKEY|ACCESSKEY|SECRETKEY|AUTHTOKEN)",
    re.IGNORECASE,
)
_PROVIDER_KEYS = frozenset(("APIKEY", "API_KEY", "TOKEN", "SECRET", "AWS_ACCESS_KEY_ID", "DATABASE_URL", "MYSQL_PWD"))
_NAMES = frozenset(
    (
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "RUBYOPT",
        "RUBYLIB",
        "RIPGREP_CONFIG_PATH",
        "LESSOPEN",
        "LESSCLOSE",
        "LESSKEYIN",
        "LESSKEY",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "MAKEFLAGS",
        "GLOBIGNORE",
        "IFS",
        "PS4",
        "PROMPT_COMMAND",
        "SHELLOPTS",
        "BASHOPTS",
        "FORCE_COLOR",
        "CLICOLOR_FORCE",
        "CDPATH",
        "SWECLI_JOB",
    )
)
_PREFIXES = ("LD_", "DYLD_", "PYTHON", "PERL5", "GIT_", "BASH_FUNC_", "TEXTUAL_")
_SET = {
    "SWECLI": "1",
    "AGENT": "swecli",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",  # an editor would wait for keys that nobody can press
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",  # git status must not write the index: it counts as reading
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",  # nor may pip list go to the network
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
}


def scrubbed_environment(environment: Mapping[str, str], *, no_color: str | None = None) -> dict[str, str]:
    """``environment`` for child processes.

    Dropped are names of secrets (``*_KEY``, ``*_TOKEN``, ``*_SECRET``, ``*PASSWORD*``, ``*CREDENTIAL*``) and
    variables by which a start-up file, a library or an option gets into every program. ``no_color`` is the value
    that ``NO_COLOR`` had when swecli started: a terminal interface may have taken it out since.
    """
    kept = {name: value for name, value in environment.items() if not is_withheld(name)}
    if no_color is not None:
        kept["NO_COLOR"] = no_color
    return {**kept, **_SET}


def secret_values(environment: Mapping[str, str]) -> frozenset[str]:
    """Values of variables that look like secrets by their names."""
    names = (name for name in environment if _SECRET.fullmatch(name.upper()) or name.upper() in _PROVIDER_KEYS)
    return frozenset(value.strip() for name in names if (value := environment[name]).strip())


def is_withheld(name: str) -> bool:
    """Whether commands do not get the variable."""
    upper = name.upper()
    return (
        upper in _NAMES
        or upper in _PROVIDER_KEYS
        or upper.startswith(_PREFIXES)
        or _SECRET.fullmatch(upper) is not None
    )
