"""The primitives: 42 small pure tools with complete records, to build composites from.

As many as the paper starts from (CoCoDA, appendix E), and with its names where it gives them
(appendix F: ``add``, ``mul``, ``pow_int``, ``filter_rows``, ``select_column``, ``sum_list``).
What is a composition of these is left out, so that it can be composed: a percentage, a standard
deviation, ``sum_where``. Their definitions are data, in ``primitives.jsonl``; here is how they run.
"""

from __future__ import annotations

import calendar
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, TypeAlias, cast

from agentkit.composites.contracts import Expression
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeError, CompositeRunError, ModelRetry
from agentkit.library.library import Library
from agentkit.testing.sample_tools import read_tools
from agentkit.tools.patterns import FORMATS

LIMITS = CompositeLimits()
"""A primitive builds nothing larger than a composite may."""

_DECIMALS = Context(prec=400)
"""Digits enough to round any float, whose largest has 309 before the point."""

_TABLE_FUEL, _LEAST_ROW_FUEL = 1_000_000, 200
"""What a predicate may use for all rows together, and what it has for each row in any case."""

_SHOWN = 200
"""Characters of a value in a message."""

Values: TypeAlias = list[float] | list[str]
"""Numbers or texts, not both, so that they have an order."""

Row: TypeAlias = dict[str, Any]
"""One row of a table: value by column."""


def primitive_library() -> Library:
    """All primitives, bound to their functions; version 0, for the library is in no store.

    Every definition has its four levels: a signature that declares no effects, words for each
    parameter, pre- and postconditions that can be checked, and at least three worked examples.

    Example:
        >>> library = primitive_library()
        >>> library["add"](a=library["mul"](a=3, b=4), b=1.5)
        13.5
    """
    return Library(PRIMITIVES)


def _finite(value: float) -> float:
    """The value, when JSON can hold it."""
    try:
        representable = math.isfinite(value)
    except OverflowError:
        representable = False
    if not representable:
        raise ModelRetry("the result is beyond the largest number (1.8e308); use smaller arguments")
    return value


def _check_not_empty(values: list[Any], what: str) -> None:
    if not values:
        raise ModelRetry(f"an empty list has no {what}; give at least one value")


# --- arithmetic ---


def add(a: float, b: float) -> float:
    """Sum of two numbers."""
    return _finite(a + b)


def sub(a: float, b: float) -> float:
    """Difference of two numbers."""
    return _finite(a - b)


def mul(a: float, b: float) -> float:
    """Product of two numbers."""
    return _finite(a * b)


def div(a: float, b: float) -> float:
    """Quotient of two numbers, with its fraction. For whole parts use floor_div."""
    _check_divisor(a, b)
    return _finite(a / b)


def floor_div(a: float, b: float) -> float:
    """How many whole times one number goes into another, rounded down."""
    _check_divisor(a, b)
    return _finite(a // b)


def mod(a: float, b: float) -> float:
    """What is left of one number after taking out another a whole number of times."""
    _check_divisor(a, b)
    return a % b


def pow_int(base: float, exponent: int) -> float:
    """A number to a whole power."""
    if base == 0 and exponent < 0:
        raise ModelRetry(f"0 to the power of {exponent} is 1 divided by zero; use another base")
    if isinstance(base, int) and base.bit_length() > 1:
        bits = base.bit_length() * exponent
        if bits > LIMITS.integer_bits:
            return _finite(math.inf)
    try:
        return _finite(base**exponent)
    except OverflowError:
        return _finite(math.inf)


def sqrt(value: float) -> float:
    """Square root of a number."""
    if value < 0:
        raise ModelRetry(f"{value} is negative and has no real square root; give 0 or more")
    return math.sqrt(_finite(value))


def neg(value: float) -> float:
    """A number with the other sign."""
    return -value


def absolute(value: float) -> float:
    """A number without its sign."""
    return abs(value)


def round_to(value: float, digits: int = 0) -> float:
    """A number rounded to so many decimals; halves go away from zero, as on an invoice."""
    if not -12 <= digits <= 12:
        raise ModelRetry(f"digits is {digits}; give -12 to 12")
    step = Decimal(1).scaleb(-digits)
    rounded = Decimal(str(_finite(value))).quantize(step, ROUND_HALF_UP, _DECIMALS)
    return int(rounded) if isinstance(value, int) or digits <= 0 else float(rounded)


def _check_divisor(a: float, b: float) -> None:
    if b == 0:
        raise ModelRetry(f"{a} cannot be divided by zero; give another b, or leave the step out")


# --- statistics ---


def sum_list(values: list[float]) -> float:
    """Sum of a list of numbers."""
    return _total(values)


def count_items(values: list[Any]) -> int:
    """Number of items in a list."""
    return len(values)


def mean(values: list[float]) -> float:
    """Average of a list of numbers."""
    _check_not_empty(values, "mean")
    return _total(values) / len(values)


def median(values: list[float]) -> float:
    """Middle of a list of numbers: half of them are not above it, half not below."""
    _check_not_empty(values, "median")
    return _percentile(values, 50)


def mode(values: Values) -> float | str:
    """The value that occurs most often in a list; the first of them on a tie."""
    _check_not_empty(values, "mode")
    counts: Counter[float | str] = Counter(values)
    return max(counts, key=lambda value: counts[value])


def variance(values: list[float], sample: bool = False) -> float:  # noqa: FBT001, FBT002 - called by name
    """Mean squared distance of numbers from their mean."""
    divisor = len(values) - 1 if sample else len(values)
    if divisor < 1:
        needed = "two values, or set sample to false" if sample else "one value"
        raise ModelRetry(f"{len(values)} values have no variance; give at least {needed}")
    middle = _total(values) / len(values)
    return _total([(value - middle) * (value - middle) for value in values]) / divisor


def minimum(values: list[float]) -> float:
    """Smallest of a list of numbers."""
    _check_not_empty(values, "minimum")
    return min(values)


def maximum(values: list[float]) -> float:
    """Largest of a list of numbers."""
    _check_not_empty(values, "maximum")
    return max(values)


def percentile(values: list[float], percent: float) -> float:
    """The number below which a given part of a list lies."""
    _check_not_empty(values, "percentile")
    if not 0 <= percent <= 100:
        raise ModelRetry(f"percent is {percent}; give 0 to 100")
    return _percentile(values, percent)


def _total(values: list[float]) -> float:
    """The exact sum of integers, or the correctly rounded one of floats."""
    if all(isinstance(value, int) for value in values):
        return _finite(sum(values))
    try:
        return _finite(math.fsum(values))
    except (OverflowError, ValueError):  # on the way, or of opposite infinities
        return _finite(math.inf)


def _percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    part = position - below
    if part == 0:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    return min(max(low * (1 - part) + high * part, low), high)


# --- lists ---


def sort_list(values: Values, descending: bool = False) -> Values:  # noqa: FBT001, FBT002 - called by name
    """A list in order, smallest or first in the alphabet first."""
    try:
        return cast("Values", sorted(cast("list[Any]", values), reverse=descending))
    except TypeError as error:
        raise ModelRetry(
            f"these values have no common order ({error}); give numbers only, or texts only"
        ) from error


def unique(values: Values) -> Values:
    """A list without repetitions, in the order in which the values first occur."""
    return cast("Values", list(dict.fromkeys(values)))


def take(
    values: list[Any],
    count: int,
    skip: int = 0,
) -> list[Any]:
    """A stretch of a list: its first items, or those after some that are skipped."""
    if count < 0 or skip < 0:
        raise ModelRetry(f"count is {count} and skip is {skip}; give 0 or more for both")
    return values[skip : skip + count]


def index_of(values: list[Any], value: Any) -> int | None:
    """Place of a value in a list, from 0."""
    return values.index(value) if value in values else None


def concat(first: list[Any], second: list[Any]) -> list[Any]:
    """Two lists one after the other."""
    if len(first) + len(second) > LIMITS.collection_items:
        raise ModelRetry(
            f"{len(first)} and {len(second)} items are more than {LIMITS.collection_items:,} "
            "together; shorten the lists"
        )
    return first + second


# --- strings ---


def to_lower(text: str) -> str:
    """A text in small letters, such as to compare two spellings."""
    return text.lower()


def trim(text: str) -> str:
    """A text without the white space around it."""
    return text.strip()


def split_text(text: str, separator: str) -> list[str]:
    """The parts of a text between separators. join_text is the way back."""
    _check_given(separator, "separator")
    if text.count(separator) >= LIMITS.collection_items:
        raise ModelRetry(f"more than {LIMITS.collection_items:,} parts; shorten the text")
    return text.split(separator)


def join_text(parts: list[str], separator: str) -> str:
    """One text from many. split_text is the way back."""
    _check_length(sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0))
    return separator.join(parts)


def replace_text(text: str, old: str, new: str) -> str:
    """A text in which each occurrence of one part is replaced by another."""
    _check_given(old, "old")
    _check_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def contains_text(text: str, part: str, ignore_case: bool = False) -> bool:  # noqa: FBT001, FBT002 - called by name
    """Whether one text occurs in another."""
    return part.lower() in text.lower() if ignore_case else part in text


def substring(text: str, start: int, length: int) -> str:
    """Part of a text by place and length."""
    if start < 0 or length < 0:
        raise ModelRetry(f"start is {start} and length is {length}; give 0 or more for both")
    return text[start : start + length]


def _check_given(text: str, parameter: str) -> None:
    if not text:
        raise ModelRetry(f"{parameter} is empty; give at least one character")


def _check_length(length: int) -> None:
    if length > LIMITS.string_chars:
        raise ModelRetry(
            f"the text would have {length:,} characters, more than {LIMITS.string_chars:,}; "
            "work on a shorter one"
        )


# --- dates ---


def days_between(start: str, end: str) -> int:
    """Number of days from one day to another."""
    return (_parsed(end) - _parsed(start)).days


def add_days(day: str, days: int) -> str:
    """The day so many days later."""
    try:
        return (_parsed(day) + timedelta(days=days)).isoformat()
    except OverflowError as error:
        raise _out_of_range(f"{day} and {days} days") from error


def add_months(day: str, months: int) -> str:
    """The same day of a month so many months later."""
    start = _parsed(day)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not date.min.year <= year <= date.max.year:
        raise _out_of_range(f"{day} and {months} months")
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(start.day, last)).isoformat()


def weekday(day: str) -> str:
    """Day of the week."""
    return calendar.day_name[_parsed(day).weekday()]


def format_date(day: str, pattern: str) -> str:
    """A day in another notation, or a part of it, such as its month."""
    _parsed(day)
    return pattern.replace("YYYY", day[:4]).replace("MM", day[5:7]).replace("DD", day[8:])


def _parsed(day: str) -> date:
    if not FORMATS["date"](day):  # date.fromisoformat alone takes other notations too
        raise ModelRetry(f"{day!r} is no day of the calendar; write YYYY-MM-DD")
    return date.fromisoformat(day)


def _out_of_range(what: str) -> ModelRetry:
    return ModelRetry(f"{what} is outside the calendar, which runs from year 1 to year 9999")


# --- tables ---


def filter_rows(rows: list[Row], predicate: str) -> list[Row]:
    """The rows of a table for which a condition holds."""
    try:
        condition = Expression.parse(predicate, ("row",))
    except CompositeError as error:
        why = "; ".join(f"{problem.message}. {problem.advice}" for problem in error.problems)
        raise ModelRetry(f"the predicate {predicate!r} cannot be used: {why}") from error
    fuel = max(_LEAST_ROW_FUEL, min(LIMITS.fuel, _TABLE_FUEL // (len(rows) or 1)))
    limits = replace(LIMITS, fuel=fuel)
    return [row for at, row in enumerate(rows) if _holds(condition, row, at, limits)]


def select_column(rows: list[Row], column: str) -> list[Any]:
    """The values of one column of a table."""
    _check_column(rows, column)
    return [row[column] for row in rows]


def sort_rows(rows: list[Row], column: str, descending: bool = False) -> list[Row]:  # noqa: FBT001, FBT002 - called by name
    """A table in the order of one column; rows with the same value keep their order."""
    _check_column(rows, column)
    try:
        return sorted(rows, key=lambda row: row[column], reverse=descending)
    except TypeError as error:
        raise ModelRetry(
            f"the values of column {column!r} have no common order ({error}); filter the rows first"
        ) from error


def group_rows(rows: list[Row], column: str) -> dict[str, list[Row]]:
    """The rows of a table by their value in one column."""
    _check_column(rows, column)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row[column]), []).append(row)
    return groups


def join_rows(left: list[Row], right: list[Row], column: str) -> list[Row]:
    """Two tables side by side where they agree in one column (an inner join)."""
    _check_column(left, column)
    _check_column(right, column)
    partners = _by_value(right, column)
    joined: list[Row] = []
    for row in left:
        joined.extend(other | row for other in partners.get(_key(row, column), ()))
        if len(joined) > LIMITS.collection_items:
            raise ModelRetry(
                f"more than {LIMITS.collection_items:,} pairs of rows agree in {column!r}; "
                "filter the tables first"
            )
    return joined


def _holds(condition: Expression, row: Row, at: int, limits: CompositeLimits) -> bool:
    try:
        held = condition.evaluate({"row": row}, limits=limits)
    except CompositeRunError as error:
        shown = repr(row)[:_SHOWN]
        raise ModelRetry(f"the predicate has no value for row {at}, {shown}: {error}") from error
    if not isinstance(held, bool):
        raise ModelRetry(
            f"the predicate gives {repr(held)[:_SHOWN]} for row {at}, not true or false; compare "
            "it with a value"
        )
    return held


def _by_value(rows: Iterable[Row], column: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(_key(row, column), []).append(row)
    return found


def _key(row: Row, column: str) -> Any:
    value = row[column]
    if isinstance(value, list | dict):
        raise ModelRetry(f"column {column!r} holds {value!r}; join on text, numbers or null")
    return value


def _check_column(rows: Iterable[Row], column: str) -> None:
    for at, row in enumerate(rows):
        if column not in row:
            raise ModelRetry(f"row {at} has no column {column!r}; it has {', '.join(row)}")


PRIMITIVES = read_tools("primitives.jsonl", globals())
"""All of them, bound."""
