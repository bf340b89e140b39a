"""Read data out of text that a model wrote: JSON, Python literals, and what lies between.

Nothing is evaluated: this is a reader for data only, made by hand because neither ``json`` nor
``ast`` reads ``{"a": True, 'b': null,}``, and because ``ast`` spends memory and prints warnings on
text that nobody has checked. It takes time linear in the text and stops at fixed bounds.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

MAX_DEPTH = 32
"""Deepest nesting of lists and objects."""

MAX_VALUES = 10_000
"""Most values in one literal, nested ones included."""

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9_]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])", re.ASCII
)
_WORD = re.compile(r"[^\W\d]\w*")
_STRING = re.compile(
    r"(?P<prefix>[rRbBuUfF]?)(?:"
    r'"""(?P<a>[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*)"""'
    r"|'''(?P<b>[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*)'''"
    r'|"(?P<c>[^"\\]*(?:\\.[^"\\]*)*)"'
    r"|'(?P<d>[^'\\]*(?:\\.[^'\\]*)*)')",
    re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-7]{1,3})|(.))", re.DOTALL
)
_CONSTANTS = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
_ESCAPED = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v",
    "\\": "\\", "/": "/", '"': '"', "'": "'", "\n": "",
}  # fmt: skip
_CLOSERS = {"[": "]", "(": ")", "{": "}"}


class UnreadableError(ValueError):
    """The text holds no data here."""


class LiteralReader:
    r"""Reads values from ``text``, moving ``position`` along.

    Attributes:
        text: The text.
        position: Where the next value is expected.

    Example:
        >>> reader = LiteralReader("{'city': \"Oslo\", days: [1, 2,], warm: true")
        >>> reader.value()
        {'city': 'Oslo', 'days': [1, 2], 'warm': True}
    """

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position
        self._depth = 0
        self._values = 0

    def seek(self, position: int) -> None:
        """Read on from ``position``. The bound on values holds for all that this reader reads."""
        self.position = position
        self._depth = 0

    def value(self) -> Any:
        """The value at ``position``.

        Raises:
            UnreadableError: There is none, or it breaks a bound.
        """
        self._values += 1
        if self._values > MAX_VALUES:
            self.fail(f"more than {MAX_VALUES} values")
        character = self.peek()
        if character == "{":
            return self._nested(self._object)
        if character in {"[", "("}:
            return self._nested(self._list)
        match = _STRING.match(self.text, self.position)
        if match:
            return self._string(match)
        match = _NUMBER.match(self.text, self.position)
        return self._number(match) if match else self._constant()

    def peek(self) -> str:
        """The next character that is not a space; empty at the end of the text."""
        match = _SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.text[self.position : self.position + 1]

    def take(self, token: str) -> bool:
        """Whether ``token`` comes next; if so, it is passed."""
        self.peek()
        if not self.text.startswith(token, self.position):
            return False
        self.position += len(token)
        return True

    def close(self, closer: str) -> bool:
        """Whether the list, object or call ends here.

        A missing closing bracket is assumed at the end of the text and before another one.
        """
        if self.take(closer):
            return True
        return self.peek() in {"", "]", ")", "}"}

    def separate(self, closer: str) -> None:
        """Pass the comma after an item, unless the end follows."""
        if not self.take(",") and self.peek() not in {"", "]", ")", "}"}:
            self.fail(f"expected , or {closer}")

    def fail(self, message: str) -> NoReturn:
        """Stop reading here.

        Raises:
            UnreadableError: Always.
        """
        near = self.text[self.position : self.position + 20]
        raise UnreadableError(f"{message} at {near!r}")

    def _nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH}")
        opener = self.text[self.position]
        self.position += 1
        value = read(opener)
        self._depth -= 1
        return value

    def _list(self, opener: str) -> Any:
        closer, items, comma = _CLOSERS[opener], [], False
        while not self.close(closer):
            items.append(self.value())
            comma = self.peek() == ","
            self.separate(closer)
        # As in Python, brackets around one value do not make a tuple of it.
        return items[0] if opener == "(" and len(items) == 1 and not comma else items

    def _object(self, opener: str) -> Any:
        closer = _CLOSERS[opener]
        entries: dict[str, Any] = {}
        members: list[Any] = []
        while not self.close(closer):
            key = self._key()
            if self.take(":"):
                entries[key if isinstance(key, str) else str(key)] = self.value()
            else:
                members.append(key)
            self.separate(closer)
        if entries and members:
            self.fail("an entry without a value")
        return members or entries  # {1, 2} is a Python set: a list in JSON

    def _key(self) -> Any:
        self.peek()
        word = _WORD.match(self.text, self.position)
        if word and self.text[word.end() : word.end() + 1] not in {"'", '"'}:
            self.position = word.end()
            return word[0]
        return self.value()

    def _string(self, match: re.Match[str]) -> str:
        body = next(part for part in match.group("a", "b", "c", "d") if part is not None)
        prefix = match["prefix"].lower()
        if prefix == "f" and "{" in body:
            self.fail("a string with expressions in it")
        self.position = match.end()
        return body if prefix == "r" else self._unescaped(body)

    def _unescaped(self, body: str) -> str:
        if "\\" not in body:
            return body
        try:
            text = _ESCAPE.sub(_character, body)
        except (ValueError, OverflowError):
            self.fail("an escape beyond Unicode")
        # JSON writes a character beyond the basic plane as two escapes; a lone half has no meaning.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _number(self, match: re.Match[str]) -> int | float:
        digits = match[0].replace("_", "")
        try:
            number = int(digits) if digits.lstrip("+-").isdigit() else float(digits)
        except ValueError:  # Python refuses integers of thousands of digits
            self.fail("a number too long")
        if number in {float("inf"), float("-inf")}:
            self.fail("a number beyond the range of floats")
        self.position = match.end()
        return number

    def _constant(self) -> Any:
        match = _WORD.match(self.text, self.position)
        if match is None or match[0] not in _CONSTANTS:
            self.fail("not a value")
        self.position = match.end()
        return _CONSTANTS[match[0]]


def _character(match: re.Match[str]) -> str:
    short, long, byte, octal, other = match.groups()
    code = short or long or byte
    if code:
        return chr(int(code, 16))
    if octal:
        return chr(int(octal, 8))
    return _ESCAPED.get(other, match[0])  # an unknown escape stays as written, as in Python
