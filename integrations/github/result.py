"""Hands the result of ``swecli -p --output-format json`` to the steps of a workflow.

    python3 result.py RESULT STATUS TITLE

Writes the outputs of the step to the file that GITHUB_OUTPUT names, and the answer as Markdown beside the result and
into the job's summary. Needs nothing but Python.
"""

import json
import os
import re
import secrets
import sys
from pathlib import Path
from typing import Any

SEVERITIES = ("critical", "major", "minor", "info")


def plain(text: object) -> str:
    """The model's words as Markdown that reaches nobody: no mention notifies, no image is fetched, no comment hides."""
    defused = re.sub(r"@(?=\w)", "@\u200b", str(text)).replace("![", "!\\[")
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", defused)


def cell(text: object) -> str:
    return " ".join(plain(text).split()).replace("|", "\\|")


def findings(answer: Any) -> list[dict[str, Any]]:
    """The answer's list ``findings``, the worst first; empty if it has none in the form of the review workflow."""
    listed = answer.get("findings") if isinstance(answer, dict) else None
    rows = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return sorted(rows, key=lambda row: SEVERITIES.index(row["severity"]) if row.get("severity") in SEVERITIES else 9)


def markdown(result: dict[str, Any], title: str) -> str:
    """The comment. Its first line identifies it, so that the next run replaces it."""
    marker = re.sub(r"[^\w ]", "", title)
    lines = [f"<!-- swecli {marker} -->", f"### {cell(title)}", ""]
    answer = result.get("structured_output")
    error = result.get("error")
    if error:
        lines += [f"swecli stopped ({cell(error.get('kind'))}): {cell(error.get('message'))}", ""]
    elif isinstance(answer, dict) and (rows := findings(answer)):
        lines += [plain(answer.get("summary", "")), "", "| severity | where | finding |", "|---|---|---|"]
        for row in rows:
            where = f"{row.get('file', '')}:{row['line']}" if row.get("line") else row.get("file", "")
            lines.append(f"| {cell(row.get('severity', ''))} | `{cell(where)}` | {cell(row.get('finding', ''))} |")
        lines.append("")
    elif isinstance(answer, dict) and "summary" in answer:
        lines += [plain(answer["summary"]), "", *(["No findings."] if "findings" in answer else []), ""]
    else:
        lines += [plain(result.get("text", "")), ""]
    cost = f" · ${float(result['cost']):.2f}" if result.get("cost") else ""
    lines.append(f"<sub>{cell(result.get('model') or 'swecli')}{cost} · status {cell(result.get('status'))}</sub>")
    return "\n".join((*lines, ""))


def outputs(result: dict[str, Any], status: int, comment: Path) -> dict[str, str]:
    structured = result.get("structured_output")
    return {
        "status": str(result.get("status", "error")),
        "exit-code": str(status),
        "session": str(result.get("session") or "") if result.get("kept") != "nothing" else "",
        "text": str(result.get("text") or ""),
        "structured-output": "" if structured is None else json.dumps(structured, ensure_ascii=False),
        "comment-file": str(comment),
    }


def main(path: str, status: str, title: str) -> None:
    file = Path(path)
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        result = {"status": "error", "error": {"kind": "usage", "message": "swecli gave no result; see the log"}}
    comment = file.with_name("swecli-comment.md")
    comment.write_text(markdown(result, title), encoding="utf-8")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(summary, "a", encoding="utf-8") as out:
            out.write(comment.read_text(encoding="utf-8"))
    # https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#multiline-strings
    end = f"end-{secrets.token_hex(16)}"  # the model can't write it
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as out:
        for name, value in outputs(result, int(status), comment).items():
            out.write(f"{name}<<{end}\n{value}\n{end}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
