"""The methods that the language knows, of texts, lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentkit.composites.interpreter.consumers import FOLDS, consume
from agentkit.composites.interpreter.functions import iterable
from agentkit.composites.interpreter.meter import Meter
from agentkit.composites.interpreter.operations import (
    check_values,
    look_at_key,
    look_for,
    search,
)
from agentkit.composites.interpreter.weights import CONTAINERS, VALUES

Method = Callable[..., Any]

_FEW = 64
"""So many characters to strip are looked for one by one."""


def _text(method: Callable[..., Any]) -> Method:
    """A method that reads a text once and gives a text of about its length."""

    def run(meter: Meter, text: str, *arguments: Any) -> Any:
        meter.spend(len(text) >> 3)
        made = method(text, *arguments)
        if type(made) is str and len(made) > len(text):
            meter.make_text(len(made))
        return made

    return run


def _search(method: Callable[..., Any]) -> Method:
    """A method that looks for a text in a text."""

    def run(meter: Meter, text: str, wanted: Any) -> Any:
        check_values(wanted, None)
        if type(wanted) is str:
            search(meter, text, wanted)
        return method(text, wanted)

    return run


def _affix(method: Callable[..., bool]) -> Method:
    """A method that looks at one end of a text."""

    def run(meter: Meter, text: str, wanted: Any) -> bool:
        check_values(wanted, None)
        if type(wanted) is str:
            meter.spend(len(wanted) >> 5)
        elif type(wanted) in CONTAINERS:
            meter.look(wanted)
        return method(text, wanted)

    return run


def _strip(method: Callable[..., str]) -> Method:
    def run(meter: Meter, text: str, *characters: Any) -> str:
        if characters and type(characters[0]) is str and len(characters[0]) > _FEW:
            meter.spend(len(characters[0]))
            characters = ("".join(set(characters[0])),)
            meter.spend((len(text) >> 3) * (len(characters[0]) >> 6))
        meter.spend(len(text) >> 3)
        return method(text, *characters)

    return run


def _split(method: Callable[..., list[str]]) -> Method:
    def run(meter: Meter, text: str, *separator: Any) -> list[str]:
        meter.spend(len(text) >> 3)
        if separator and type(separator[0]) is str:
            search(meter, text, separator[0])
        parts = method(text, *separator)
        meter.copy_items(len(parts))
        meter.spend(len(parts))  # each a text of its own
        return parts

    return run


def _replace(meter: Meter, text: str, old: Any, new: Any) -> str:
    if type(old) is str and type(new) is str:
        for _ in range(3):  # counted here, counted again and replaced by Python
            search(meter, text, old)
        meter.make_text(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _join(meter: Meter, text: str, items: Any) -> Any:
    if type(items) not in VALUES or type(items) in CONTAINERS or type(items) is str:
        return consume(meter, FOLDS["join"](meter, text), iterable(items))
    return text.join(items)  # Python's own complaint


def _among(method: Callable[..., int]) -> Method:
    """``count`` and ``index`` of a list or tuple."""

    def run(meter: Meter, items: Any, wanted: Any) -> int:
        check_values(wanted, None)
        if type(wanted) in CONTAINERS:
            meter.look(wanted)  # Python prints it when it is not there
        look_for(meter, wanted, items)
        return method(items, wanted)

    return run


def _get(meter: Meter, table: dict[Any, Any], key: Any, *default: Any) -> Any:
    check_values(key, None)
    look_at_key(meter, key, table)
    return table.get(key, *default)


def _view(method: Callable[..., Any]) -> Method:
    def run(_meter: Meter, table: dict[Any, Any]) -> Any:
        return method(table)

    return run


_OF_TEXT: Mapping[str, Method] = {
    "capitalize": _text(str.capitalize),
    "count": _search(str.count),
    "endswith": _affix(str.endswith),
    "find": _search(str.find),
    "index": _search(str.index),
    "isalpha": _text(str.isalpha),
    "isdigit": _text(str.isdigit),
    "join": _join,
    "lower": _text(str.lower),
    "lstrip": _strip(str.lstrip),
    "replace": _replace,
    "rstrip": _strip(str.rstrip),
    "split": _split(str.split),
    "splitlines": _split(str.splitlines),
    "startswith": _affix(str.startswith),
    "strip": _strip(str.strip),
    "title": _text(str.title),
    "upper": _text(str.upper),
}
_OF_LIST: Mapping[str, Method] = {"count": _among(list.count), "index": _among(list.index)}
_OF_TUPLE: Mapping[str, Method] = {"count": _among(tuple.count), "index": _among(tuple.index)}
_OF_DICT: Mapping[str, Method] = {
    "get": _get,
    "items": _view(dict.items),
    "keys": _view(dict.keys),
    "values": _view(dict.values),
}

METHODS: Mapping[type, Mapping[str, Method]] = {
    str: _OF_TEXT,
    list: _OF_LIST,
    tuple: _OF_TUPLE,
    dict: _OF_DICT,
}
"""By type and name; called with the meter, the receiver and the arguments."""


def method_of(value: Any, name: str) -> Method:
    """The method of a value.

    Raises:
        AttributeError: Its type has no such method, in Python or in the language.
    """
    methods = METHODS.get(type(value))
    method = None if methods is None else methods.get(name)
    if method is None:
        check_values(value, None)
        message = f"{type(value).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message)
    return method
