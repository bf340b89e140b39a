"""How one part of a document that can not be mapped is told from the rest."""

from __future__ import annotations


class Unmappable(Exception):  # noqa: N818 - inside only: it becomes an entry of the report
    """A part of the document can not be mapped; the importer turns this into a value.

    Attributes:
        pointer: Where, as a JSON pointer.
        message: Why, and what to do, in a sentence.
    """

    def __init__(self, message: str, *, pointer: str) -> None:
        self.message = message
        self.pointer = pointer
        super().__init__(message)


def below(pointer: str, *keys: object) -> str:
    """A JSON pointer (RFC 6901) to something below ``pointer``.

    Example:
        >>> below("/paths", "/pets/{id}", "get")
        '/paths/~1pets~1{id}/get'
    """
    for key in keys:
        step = str(key)
        if "~" in step or "/" in step:
            step = step.replace("~", "~0").replace("/", "~1")
        pointer = f"{pointer}/{step}"
    return pointer
