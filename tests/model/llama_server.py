"""Serves a model with llama.cpp on loopback; prints its address. Runs in an environment that has xllamacpp:

    python llama_server.py MODEL.gguf CONTEXT_TOKENS [PORT [own | TEMPLATE_FILE]]

It ends with its standard input. With ``own`` the chat template is the model's, without a file one that writes out
tools, calls and all reasoning.
"""

from __future__ import annotations

import sys
from pathlib import Path

import xllamacpp  # pyright: ignore[reportMissingImports]

TEMPLATE = """
{%- if messages[0].role == 'system' %}{% set first = messages[0].content %}{% else %}{% set first = '' %}{% endif -%}
<|im_start|>system
{{ first }}
{% for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{%- for message in messages %}{% if message.role != 'system' -%}
<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>
{% endif %}{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{ call.function.name }} {{ call.function.arguments | tojson }}
{%- endfor %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def main(model: str, context: str, port: str = "0", template: str = "") -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = int(context)
    params.n_parallel = 1
    params.port = int(port)
    params.use_jinja = True
    if template != "own":
        params.force_pure_content_parser = True  # what the model says does not matter
        params.chat_template = Path(template).read_text(encoding="utf-8") if template else TEMPLATE
    params.warmup = False
    params.cpuparams.n_threads = 2
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
