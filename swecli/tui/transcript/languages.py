"""Names of languages by a file's name. Asking pygments instead costs a tenth of a second the first time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Final

_BY_LANGUAGE: Final = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "json": "json jsonl ipynb",
    "yaml": "yaml yml",
    "toml": "toml lock",
    "ini": "ini cfg conf properties",
    "bash": "sh bash zsh ksh",
    "fish": "fish",
    "c": "c h",
    "cpp": "cc cpp cxx hh hpp hxx",
    "csharp": "cs",
    "java": "java",
    "kotlin": "kt kts",
    "scala": "scala sc",
    "groovy": "groovy gradle",
    "go": "go",
    "rust": "rs",
    "swift": "swift",
    "objective-c": "m mm",
    "ruby": "rb rake gemspec",
    "php": "php",
    "perl": "pl pm",
    "lua": "lua",
    "r": "r",
    "julia": "jl",
    "haskell": "hs",
    "ocaml": "ml mli",
    "fsharp": "fs fsx",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "clojure": "clj cljs edn",
    "common-lisp": "lisp el",
    "scheme": "scm",
    "dart": "dart",
    "zig": "zig",
    "nim": "nim",
    "html": "html htm xhtml",
    "xml": "xml svg xsd xsl plist",
    "css": "css tcss",
    "scss": "scss",
    "less": "less",
    "vue": "vue",
    "sql": "sql",
    "graphql": "graphql gql",
    "protobuf": "proto",
    "terraform": "tf tfvars hcl",
    "nix": "nix",
    "cmake": "cmake",
    "make": "mk mak",
    "docker": "dockerfile",
    "powershell": "ps1 psm1",
    "batch": "bat cmd",
    "markdown": "md markdown",
    "rst": "rst",
    "tex": "tex sty",
    "diff": "diff patch",
    "vim": "vim",
    "awk": "awk",
    "asm": "asm s",
    "jinja": "j2 jinja",
}
_BY_ENDING: Final[Mapping[str, str]] = MappingProxyType(
    {ending: language for language, endings in _BY_LANGUAGE.items() for ending in endings.split()}
)
_BY_NAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "makefile": "make",
        "gnumakefile": "make",
        "dockerfile": "docker",
        "containerfile": "docker",
        "cmakelists.txt": "cmake",
        "gemfile": "ruby",
        "rakefile": "ruby",
        "jenkinsfile": "groovy",
        ".bashrc": "bash",
        ".zshrc": "bash",
        ".profile": "bash",
        ".gitconfig": "ini",
        ".editorconfig": "ini",
    }
)


def language_of(path: str) -> str:
    """The language of a file by its name, as pygments calls it; empty where it is not known."""
    pure = PurePath(path)
    return _BY_NAME.get(pure.name.lower()) or _BY_ENDING.get(pure.suffix[1:].lower(), "")
