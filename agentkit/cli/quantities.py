"""How long and how much, as people write it on a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

import click

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1} | {
    f"{letter}{tail}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for tail, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_MOST_DIGITS = 30
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def duration(_: click.Context, __: click.Parameter, text: str | None) -> timedelta | None:
    """A time such as ``30d``, ``12h`` or ``90m``; a callback of an option.

    Raises:
        click.BadParameter: The text is none.
    """
    if text is None:
        return None
    number, unit = _parts(text, _SECONDS, "time; write 30d, 12h, 90m, 45s or 2w")
    try:
        return timedelta(seconds=number * unit)
    except OverflowError as error:
        raise click.BadParameter(f"{text!r} is longer than the calendar") from error


def size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """A number of bytes such as ``500MB``, ``2GiB`` or ``1000``; a callback of an option.

    Raises:
        click.BadParameter: The text is none.
    """
    if text is None:
        return None
    number, unit = _parts(text, _BYTES, "size; write 500MB, 2GB, 2GiB or 1000")
    return int(number * unit)


def _parts(text: str, units: Mapping[str, int], what: str) -> tuple[float, int]:
    found = _QUANTITY.fullmatch(text.strip())
    unit = units.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise click.BadParameter(f"{text!r} is no {what}")
    if len(found[1]) > _MOST_DIGITS:
        raise click.BadParameter(f"{text!r} is more than there can be")
    return float(found[1]), unit
