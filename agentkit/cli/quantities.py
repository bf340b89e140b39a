"""How long and how much, as people write it on a command line."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1} | {
    f"{letter}{tail}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for tail, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


class Duration(click.ParamType):
    """A time such as ``30d``, ``12h`` or ``90m``."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The time; click says what is wrong with a text that is none."""
        found = _QUANTITY.fullmatch(str(value).strip())
        unit = _SECONDS.get(found[2].lower()) if found else None
        if found is None or unit is None:
            self.fail(f"{value!r} is no time; write 30d, 12h, 90m, 45s or 2w", param, ctx)
        try:
            return timedelta(seconds=float(found[1]) * unit)
        except OverflowError:
            self.fail(f"{value!r} is longer than the calendar", param, ctx)


class Size(click.ParamType):
    """A number of bytes such as ``500MB``, ``2GiB`` or ``1000``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes; click says what is wrong with a text that is none."""
        found = _QUANTITY.fullmatch(str(value).strip())
        unit = _BYTES.get(found[2].lower()) if found else None
        if found is None or unit is None:
            self.fail(f"{value!r} is no size; write 500MB, 2GB, 2GiB or 1000", param, ctx)
        return int(float(found[1]) * unit)
