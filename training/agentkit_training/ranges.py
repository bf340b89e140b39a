"""``check_least``: numbers that are too small are refused where they are given."""

from __future__ import annotations

from agentkit.errors import UsageError


def check_least(record: object, *names: str, least: int = 1, section: str = "") -> None:
    """Refuse a record with a number that is too small.

    Args:
        record: Whose numbers.
        names: Which of its attributes.
        least: The smallest that is of use.
        section: What the record is called in a configuration; empty where it may be anywhere.

    Raises:
        UsageError: One is smaller.

    Example:
        >>> from types import SimpleNamespace
        >>> try:
        ...     check_least(SimpleNamespace(rounds=0), "rounds")
        ... except UsageError as error:
        ...     print(error)
        rounds is 0; give 1 or more
    """
    for name in names:
        if (value := getattr(record, name)) < least:
            place = f"{section}.{name}" if section else name
            raise UsageError(f"{place} is {value}; give {least} or more")
