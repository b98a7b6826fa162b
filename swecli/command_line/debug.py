"""`swecli debug`: decodes recorded answers and runs single tool calls, for bug reports and external checks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from swecli.command_line.arguments import Parser
from swecli.command_line.standard_streams import input_lines, output_failed, print_lines
from swecli.exit_codes import ExitCode
from swecli.output import Output, OutputClosed


def debug(arguments: Sequence[str]) -> int:
    """``swecli debug decode|tool --batch``: reads JSON lines, and answers each with one JSON line."""
    parser = Parser(
        prog="swecli debug",
        description="For bug reports and external checks, one JSON object per line in and out. decode reads id, "
        "protocol, host, model, status, headers and chunks (base64); tool reads id, name, arguments, cwd, mode and "
        "approve.",
    )
    parser.add_argument("what", choices=("decode", "tool"), help="decode recorded answers, or run single tool calls")
    parser.add_argument("--batch", action="store_true", required=True, help="read lines from standard input")
    what = parser.parse_args(arguments).what
    if what == "decode":
        from swecli.core.llm.debug_decode import decode_batch

        return print_lines(decode_batch(input_lines()))
    return asyncio.run(_tool_batch())


async def _tool_batch() -> int:
    from swecli.assembly.tool_batch import tool_batch

    out = Output(sys.stdout)
    try:
        async for line in tool_batch(input_lines()):
            out.line(line)
    except OutputClosed as error:
        return output_failed(error)
    return ExitCode.OK
