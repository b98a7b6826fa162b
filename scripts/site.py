"""Builds the documentation as a site in build/site/html. Fails if a link leads to no page or heading, or if a page
would load anything from another host.

    make site

Installs zensical from the package index into build/site/tools the first time.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "site"
PAGES, HTML = PLACE / "pages", PLACE / "html"
TOOLS = PLACE / "tools" / "bin"
WANTED = "zensical>=0.0.70,<0.2"
REPOSITORY = "https://github.com/swecli/swecli/blob/main/"
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
ELSEWHERE = r'="?((?:https?:)?//[^"\s>]+)'
LOADED = re.compile(
    rf"<(?:(?:img|script|iframe|source)\b[^>]*\ssrc|link\b(?![^>]*canonical)[^>]*\shref){ELSEWHERE}",
)
CODE = re.compile(r"^```.*?^```|^(?: {4}[^\n]*\n)+|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def page(text: str, folder: str) -> str:
    """A Markdown file of ``folder`` (relative to the repository) as a page of the site: links into docs/ become links
    between pages, those to other files lead to the repository."""

    def moved(match: re.Match[str]) -> str:
        label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match.group()
        path, hash_sign, heading = target.partition("#")
        resolved = (ROOT / folder / path).resolve().relative_to(ROOT)
        if resolved.parts[:1] == ("docs",):
            path = Path(*resolved.parts[1:]).as_posix()
        elif resolved.as_posix() == "README.md":
            path = "index.md"
        else:
            path = REPOSITORY + resolved.as_posix()
        return f"{label}({path}{hash_sign}{heading})"

    pieces: list[str] = []
    end = 0
    for code in CODE.finditer(text):  # what looks like a link in code is none
        pieces += [LINK.sub(moved, text[end : code.start()]), code.group()]
        end = code.end()
    return "".join((*pieces, LINK.sub(moved, text[end:])))


def write_pages() -> None:
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for path in PAGES.glob("*.md"):
        path.write_text(page(path.read_text(encoding="utf-8"), "docs"), encoding="utf-8")
    home = page((ROOT / "README.md").read_text(encoding="utf-8"), "")
    (PAGES / "index.md").write_text(home.partition("## Documentation")[0], encoding="utf-8")  # the site has a menu


def fetched_elsewhere(site: Path) -> list[str]:
    """What pages would load from another host, a line each."""
    return [
        f"{path.relative_to(site)} loads {match.group(1)}"
        for path in sorted(site.rglob("*.html"))
        for match in LOADED.finditer(path.read_text(encoding="utf-8"))
    ]


def built() -> None:
    if not (TOOLS / "zensical").exists():
        print(f"Installing {WANTED} into {TOOLS.parent.relative_to(ROOT)} ...", flush=True)
        venv.create(TOOLS.parent, with_pip=True, clear=True)
        command = [str(TOOLS / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", WANTED]
        subprocess.run(command, check=True)
    write_pages()
    subprocess.run([str(TOOLS / "zensical"), "build", "--clean", "--strict"], cwd=ROOT, check=True)


if __name__ == "__main__":
    built()
    found = fetched_elsewhere(HTML)
    print(*found, f"{sum(1 for _ in HTML.rglob('*.html'))} pages in {HTML.relative_to(ROOT)}", sep="\n")
    sys.exit(1 if found else 0)
