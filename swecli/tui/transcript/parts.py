"""What the parts of an item and its live output add to the block that shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from swecli.core.protocol.blocks import ImageBlock
from swecli.core.protocol.messages import ImagePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.tui.transcript.blocks import AnswerBlock, Block, ReasoningBlock, SubagentBlock, ToolBlock, UserBlock

OUTPUT_TAIL: Final = 16_000
"""Characters of live output that are kept; the whole of it is in the result."""


def with_part(block: Block | None, part: Part) -> Block | None:
    """The block with a part of its item; parts that are none of its kind change nothing."""
    match block, part:
        case UserBlock(), TextPart():
            return replace(block, text=part.text)
        case (AnswerBlock(), TextPart()) | (ReasoningBlock(), ReasoningPart()):
            if part.text == block.text:
                return block
            grown = part.text.startswith(block.text)
            return replace(block, text=part.text, revision=block.revision + (0 if grown else 1))
        case ToolBlock(), ToolCallPart():
            return replace(block, name=part.name or block.name, arguments=part.arguments)
        case ((ToolBlock() | SubagentBlock()), ToolResultPart()):
            return replace(block, result=part.text)
        case SubagentBlock(), TextPart():
            return replace(block, result=part.text)
        case _:
            return block


def with_output(block: ToolBlock, text: str) -> ToolBlock:
    """The block with more output of a tool that runs; of long output the end is kept, from the start of a line."""
    output = block.output + text
    if len(output) > 2 * OUTPUT_TAIL:
        begin = output.find("\n", len(output) - OUTPUT_TAIL)
        begin = begin + 1 if begin >= 0 else len(output) - OUTPUT_TAIL
        return replace(block, output=output[begin:], output_cut=True)
    return replace(block, output=output)


def image_of(part: ImagePart) -> ImageBlock:
    """An image of the user as it is shown: by its name and size."""
    size = len(part.data) * 3 // 4 - part.data[-2:].count("=")
    return ImageBlock(part.name or "image", part.media_type, max(0, size))
