"""Texts in JSON data, however deep they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


def _none(_: str) -> bool:
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonTexts:
    """Changes the texts of JSON data and leaves its form.

    Attributes:
        text: Changes one text.
        number: Changes a whole number; what it returns may be a text.
        is_secret: Whether a field of that name holds a secret.
        secret: Changes the text of such a field.
    """

    text: Callable[[str], str]
    number: Callable[[int], int | str] = int
    is_secret: Callable[[str], bool] = _none
    secret: Callable[[str], str] = str

    def object(self, data: Mapping[Any, Any]) -> dict[str, Any]:
        """A JSON object; keys that become equal are told apart by a number.

        Python writes other keys than texts, such as numbers, too: they stay as they are.
        """
        changed: dict[Any, Any] = {}
        for key, item in data.items():
            if isinstance(key, str):
                hidden = self.is_secret(key)
                name = self._free(self.text(key), changed)
                changed[name] = self._hidden(item) if hidden else self.value(item)
            else:
                changed[key] = self.value(item)
        return changed

    def value(self, data: Any) -> Any:
        """Any JSON data. Tuples stay tuples; what is no JSON is left as it is."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, int) and not isinstance(data, bool):
            return self.number(data)
        if isinstance(data, Mapping):
            return self.object(data)
        if isinstance(data, list | tuple):
            return type(data)([self.value(item) for item in data])
        return data

    def _hidden(self, data: Any) -> Any:
        """What a field holds that is called a secret: its texts and numbers, also in a list."""
        if isinstance(data, str):
            return self.secret(data)
        if isinstance(data, int) and not isinstance(data, bool):
            return self.secret(str(data))
        if isinstance(data, list | tuple):
            return type(data)([self._hidden(item) for item in data])
        return self.value(data)

    @staticmethod
    def _free(name: str, taken: Mapping[str, Any]) -> str:
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name} {number}"
        return free
