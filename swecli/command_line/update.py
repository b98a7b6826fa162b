"""``swecli update``: names the command that upgrades this installation. It runs nothing and contacts nobody."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from msgspec import Struct

from swecli import __version__
from swecli.command_line.arguments import Parser
from swecli.command_line.standard_streams import print_text
from swecli.exit_codes import ExitCode

NAME = "swecli"


class Installation(Struct, frozen=True):
    """What the installers recorded. ``prefix`` is the environment's folder, ``python`` its interpreter, ``receipts``
    the names of the files directly in it, ``installer`` the word in the distribution's INSTALLER file and ``source``
    its ``direct_url.json`` (https://packaging.python.org/en/latest/specifications/direct-url/), empty if the package
    index was the source."""

    prefix: str
    python: str
    receipts: frozenset[str] = frozenset()
    installer: str = ""
    source: dict[str, object] = {}


class Upgrade(Struct, frozen=True):
    """``how`` completes "Installed …"; ``command`` upgrades it, in a POSIX shell."""

    how: str
    command: str


def upgrade(of: Installation) -> Upgrade:
    """The command that belongs to the installer that left its mark. The most specific mark counts: the environments of
    uv and pipx are ones that pip could change too, but their owner would not know."""
    address = str(of.source.get("url", ""))
    parts = urlsplit(address)
    folder = url2pathname(unquote(parts.path)) if parts.scheme == "file" else ""
    about = of.source.get("dir_info")
    if isinstance(about, dict) and about.get("editable") and folder:
        quoted = shlex.quote(folder)
        return Upgrade(f"from the clone {folder}", f"git -C {quoted} pull && {_pip(of)} --editable {quoted}")
    if "uv-receipt.toml" in of.receipts:
        return Upgrade("with uv tool", f"uv tool upgrade {NAME}")
    if "pipx_metadata.json" in of.receipts:
        return Upgrade("with pipx", f"pipx upgrade {NAME}")
    parts = Path(of.prefix).parts
    if "Cellar" in parts:
        return Upgrade("with Homebrew", f"brew upgrade {NAME}")
    if parts[1:3] == ("nix", "store"):
        return Upgrade("with nix", f"nix profile upgrade {NAME}")
    if "archive-v0" in parts or "environments-v2" in parts:
        return Upgrade("for one run with uvx", f"uvx {NAME}@latest")
    git = of.source.get("vcs_info")
    if isinstance(git, dict):
        revision = git.get("requested_revision")
        wanted = f"{NAME} @ git+{address}{f'@{revision}' if revision else ''}"
        return Upgrade(f"from {address}", f"{_pip(of)} --upgrade {shlex.quote(wanted)}")
    return Upgrade(f"in {of.prefix} with {of.installer or 'pip'}", f"{_pip(of)} --upgrade {NAME}")


def _pip(of: Installation) -> str:
    if of.installer == "uv":  # its environments need not contain pip
        return f"uv pip install --python {shlex.quote(of.python)}"
    return f"{shlex.quote(of.python)} -m pip install"


def this_installation() -> Installation:
    prefix = Path(sys.prefix)
    receipts: frozenset[str] = frozenset()
    with suppress(OSError):
        receipts = frozenset(path.name for path in prefix.iterdir())
    installer, source = "", {}
    with suppress(PackageNotFoundError):
        package = distribution(NAME)
        installer = (package.read_text("INSTALLER") or "").strip()
        with suppress(ValueError):
            recorded = json.loads(package.read_text("direct_url.json") or "{}")
            source = recorded if isinstance(recorded, dict) else {}
    return Installation(str(prefix), sys.executable, receipts, installer, source)


def update(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="swecli update",
        description="Print the command that upgrades swecli, by the way it was installed. Nothing is run or fetched.",
    )
    parser.parse_args(arguments)
    way = upgrade(this_installation())
    print_text(f"swecli {__version__}, installed {way.how}. To upgrade it:\n\n    {way.command}\n")
    return ExitCode.OK
