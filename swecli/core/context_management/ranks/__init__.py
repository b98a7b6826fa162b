"""The ranks of the o200k_base encoding as package data, so that exact counts need no network.

Layout of the file, little endian: ``RNK1``; uint32 n, the number of tokens; uint32 m and m pairs of uint32 (index,
rank), the tokens with a rank other than their index; uint32 a and a bytes of xz, the n lengths of the tokens as one
byte each; the rest xz of the tokens' bytes, one after the other.
"""

from __future__ import annotations

import hashlib
import lzma
import struct
from itertools import accumulate
from pathlib import Path

_MAGIC = b"RNK1"
_FILE = "o200k_base.rnk"
_SHA256 = "873c9b6ada0feb05e7c8cadb57f4b110cf74dbd88c3c4ea91288ff013eef81bb"
"""Digest of the file: damage inside a part without a checksum would give wrong counts and no error."""


class RanksError(ValueError):
    """The packed ranks can't be used; the message says why."""


def read_ranks() -> dict[bytes, int]:
    """Rank of each token of o200k_base by its bytes, in the order of ranks. Takes a tenth of a second.

    Raises:
        RanksError: the file is broken.
        OSError: it can't be read.
    """
    data = (Path(__file__).parent / _FILE).read_bytes()
    if hashlib.sha256(data).hexdigest() != _SHA256:
        raise RanksError(f"the packed ranks ({_FILE}) are damaged; reinstall swecli")
    return unpack(data)


def unpack(data: bytes) -> dict[bytes, int]:
    """The ranks in a packed file.

    Raises:
        RanksError: it is not one, or truncated.
    """
    try:
        return _unpacked(data)
    except (struct.error, lzma.LZMAError, EOFError) as error:
        raise RanksError(f"packed ranks are broken: {error}") from error


def _unpacked(data: bytes) -> dict[bytes, int]:
    if data[:4] != _MAGIC:
        raise RanksError("no packed ranks: the file does not begin with RNK1")
    count, exceptions = struct.unpack_from("<II", data, 4)
    pairs = struct.unpack_from(f"<{2 * exceptions}I", data, 12)
    offset = 12 + 8 * exceptions
    (packed_lengths,) = struct.unpack_from("<I", data, offset)
    offset += 4
    lengths = lzma.decompress(data[offset : offset + packed_lengths])
    text = lzma.decompress(data[offset + packed_lengths :])
    ends = list(accumulate(lengths))
    if len(lengths) != count or (ends and ends[-1] != len(text)):
        raise RanksError(f"packed ranks are broken: {len(lengths):,} of {count:,} tokens")
    rank_of = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return {
        text[end - length : end]: rank_of.get(index, index)
        for index, (end, length) in enumerate(zip(ends, lengths, strict=True))
    }
