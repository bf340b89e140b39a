"""Primitives on days of the Gregorian calendar, written YYYY-MM-DD. There is no clock in them."""

from __future__ import annotations

import calendar
from datetime import date, timedelta
from typing import Literal, TypeAlias, cast

from agentkit.errors import ModelRetry
from agentkit.testing.primitives.common import PURE, IsoDate, worked
from agentkit.tools.decorator import tool
from agentkit.tools.formats import FORMATS

Weekday: TypeAlias = Literal[
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"
]

_TAGS = ("dates",)
_WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ROUGHLY = (
    "abs({days} - 365.2425 * (int({end}[:4]) - int({start}[:4]))"
    " - 30.44 * (int({end}[5:7]) - int({start}[5:7])) - (int({end}[8:]) - int({start}[8:]))) < 5"
)
"""A number of days agrees with the years, months and days that the texts of two days differ by."""
_YEAR = '(int(day[:4]) - (1 if day[5:7] < "03" else 0))'
_GAUSS = (
    f"{list(_WEEK)}[(int(day[8:]) + 1 + (13 * ((int(day[5:7]) - 3) % 12) + 2) // 5"
    f" + {_YEAR} + {_YEAR} // 4 - {_YEAR} // 100 + {_YEAR} // 400) % 7] == result"
)
"""Gauss's rule, in which January and February belong to the year before."""


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(start) == 10", "len(end) == 10"),
    post=(
        "(result > 0) == (end > start)",
        "(result == 0) == (end == start)",
        _ROUGHLY.format(days="result", start="start", end="end"),
    ),
    complexity="O(1)",
    examples=(
        worked(
            14,
            "How long is the right of return from 2 to 16 March 2026?",
            start="2026-03-02",
            end="2026-03-16",
        ),
        worked(-1, start="2026-01-01", end="2025-12-31"),
        worked(2, start="2024-02-28", end="2024-03-01"),
        worked(0, start="2026-03-02", end="2026-03-02"),
    ),
)
def days_between(start: IsoDate, end: IsoDate) -> int:
    """Number of days from one day to another.

    Args:
        start: Day to count from, YYYY-MM-DD.
        end: Day to count to, YYYY-MM-DD.

    Returns:
        The days; negative when the end is before the start.

    Raises:
        ModelRetry: One of them is no day of the calendar.
    """
    return (_parsed(end) - _parsed(start)).days


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(day) == 10",),
    post=(
        "len(result) == 10",
        "(result > day) == (days > 0)",
        "(result == day) == (days == 0)",
        _ROUGHLY.format(days="days", start="day", end="result"),
    ),
    complexity="O(1)",
    examples=(
        worked(
            "2026-03-16",
            "Until when may I return a car bought on 2 March 2026 (14 days)?",
            day="2026-03-02",
            days=14,
        ),
        worked("2025-12-31", day="2026-01-01", days=-1),
        worked("2024-02-29", day="2024-02-28", days=1),
    ),
)
def add_days(day: IsoDate, days: int) -> IsoDate:
    """The day so many days later.

    Args:
        day: Day to start from, YYYY-MM-DD.
        days: How many days to go on; negative ones go back.

    Returns:
        The day, YYYY-MM-DD.

    Raises:
        ModelRetry: day is no day of the calendar, or the result is outside years 1 to 9999.
    """
    try:
        return (_parsed(day) + timedelta(days=days)).isoformat()
    except OverflowError as error:
        raise _out_of_range(f"{day} and {days} days") from error


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(day) == 10",),
    post=(
        "int(result[:4]) * 12 + int(result[5:7]) == int(day[:4]) * 12 + int(day[5:7]) + months",
        "int(result[8:]) <= int(day[8:])",
        "result[8:] == day[8:] or int(result[8:]) >= 28",
    ),
    complexity="O(1)",
    examples=(
        worked(
            "2027-03-02",
            "When does a warranty of 12 months from 2 March 2026 end?",
            day="2026-03-02",
            months=12,
        ),
        worked("2026-02-28", day="2026-01-31", months=1),
        worked("2025-11-15", day="2026-01-15", months=-2),
    ),
)
def add_months(day: IsoDate, months: int) -> IsoDate:
    """The same day of a month so many months later.

    A month that is too short gives its last day: 31 January and one month is 28 February, or 29
    in a leap year.

    Args:
        day: Day to start from, YYYY-MM-DD.
        months: How many months to go on; negative ones go back.

    Returns:
        The day, YYYY-MM-DD.

    Raises:
        ModelRetry: day is no day of the calendar, or the result is outside years 1 to 9999.
    """
    start = _parsed(day)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not date.min.year <= year <= date.max.year:
        raise _out_of_range(f"{day} and {months} months")
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(start.day, last)).isoformat()


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(day) == 10",),
    post=(_GAUSS,),
    complexity="O(1)",
    examples=(
        worked("Monday", "Which day of the week is 2 March 2026?", day="2026-03-02"),
        worked("Thursday", day="2024-02-29"),
        worked("Monday", day="0001-01-01"),
    ),
)
def weekday(day: IsoDate) -> Weekday:
    """Day of the week.

    Args:
        day: Day, YYYY-MM-DD.

    Returns:
        Its English name.

    Raises:
        ModelRetry: day is no day of the calendar.
    """
    return cast("Weekday", _WEEK[_parsed(day).weekday()])


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("len(day) == 10",),
    post=(
        'result == pattern.replace("YYYY", day[:4]).replace("MM", day[5:7]).replace("DD", day[8:])',
    ),
    complexity="O(n)",
    examples=(
        worked(
            "02.03.2026",
            "Write 2 March 2026 the German way.",
            day="2026-03-02",
            pattern="DD.MM.YYYY",
        ),
        worked("2026-03", day="2026-03-02", pattern="YYYY-MM"),
        worked("due", day="2026-03-02", pattern="due"),
    ),
)
def format_date(day: IsoDate, pattern: str) -> str:
    """A day in another notation, or a part of it, such as its month.

    Args:
        day: Day, YYYY-MM-DD.
        pattern: What to write, where YYYY, MM and DD stand for year, month and day.

    Returns:
        The pattern with numbers in it.

    Raises:
        ModelRetry: day is no day of the calendar.
    """
    _parsed(day)
    return pattern.replace("YYYY", day[:4]).replace("MM", day[5:7]).replace("DD", day[8:])


def _parsed(day: str) -> date:
    if not FORMATS["date"](day):  # date.fromisoformat alone takes other notations too
        raise ModelRetry(f"{day!r} is no day of the calendar; write YYYY-MM-DD")
    return date.fromisoformat(day)


def _out_of_range(what: str) -> ModelRetry:
    return ModelRetry(f"{what} is outside the calendar, which runs from year 1 to year 9999")


DATES = (days_between, add_days, add_months, weekday, format_date)
