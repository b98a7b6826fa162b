"""Writes a copy of a GGUF model with its first layers only: as quick as its tokenizer is real, and without the limit
of its training on the window, to which llama.cpp would cut a larger one.

python cut_layers.py MODEL.gguf SHORT.gguf LAYERS
"""

from __future__ import annotations

import sys

from gguf import GGUFReader, GGUFValueType, GGUFWriter

LARGEST_WINDOW = 32_768


def main(model: str, short: str, layers: int) -> None:
    reader = GGUFReader(model)
    architecture = reader.fields["general.architecture"].contents()
    writer = GGUFWriter(short, architecture)
    changed = {f"{architecture}.block_count": layers, f"{architecture}.context_length": LARGEST_WINDOW}
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = changed.get(name, field.contents())
        kinds = [*field.types, None]
        writer.add_key_value(name, value, kinds[0], kinds[1] if kinds[0] == GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        if tensor.name.startswith("blk.") and int(tensor.name.split(".")[1]) >= layers:
            continue
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
