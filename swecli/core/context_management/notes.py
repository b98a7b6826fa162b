"""What a projection says to the model besides what was said."""

from __future__ import annotations

MISSING_RESULT = "No result: the call was not executed."
INTERRUPTED = "interrupted"
"""``Stop.detail`` of an answer that the user cut short."""

INTERRUPTION_NOTE = "[The user interrupted your previous answer; what you had written until then is above.]"
CUT_NOTE = "[Your previous answer was cut off by a failure of the connection; what had arrived is above.]"
GO_ON_NOTE = (
    "[Your previous answer was cut off by a failure of the connection. Go on exactly where it stops, without repeating "
    "what is above; none of its tool calls was executed.]"
)
CONTINUATION = "[The conversation continues.]"
