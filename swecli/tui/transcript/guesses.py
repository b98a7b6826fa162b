"""About how many rows each block has, at any width, without reading the blocks."""

from __future__ import annotations

from array import array


class Guesses:
    """Of each block the rows that it has at any width, and the characters that fill further ones."""

    __slots__ = ("_lengths", "_rows")

    def __init__(self) -> None:
        self._rows, self._lengths = array("q"), array("q")

    def put(self, place: int, rows: int, length: int) -> None:
        """Set what is known of a block, or of a new one at the end."""
        if place == len(self._rows):
            self._rows.append(rows)
            self._lengths.append(length)
        else:
            self._rows[place], self._lengths[place] = rows, length

    def remove(self, place: int) -> None:
        """Take a block out; those behind it move up by one."""
        del self._rows[place], self._lengths[place]

    def clear(self) -> None:
        """No blocks."""
        del self._rows[:], self._lengths[:]

    def at(self, place: int, width: int) -> int:
        """The height of a block at a width."""
        return self._rows[place] + self._lengths[place] // width

    def all(self, width: int) -> list[int]:
        """The heights of all blocks at a width."""
        return [rows + length // width for rows, length in zip(self._rows, self._lengths, strict=True)]
