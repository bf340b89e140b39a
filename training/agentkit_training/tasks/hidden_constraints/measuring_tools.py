"""Tools that take texts of a form, or numbers in a unit of their own."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit_training.tasks.hidden_constraints.constraints import Counted, Shaped
from agentkit_training.tasks.hidden_constraints.entities import MONTHS, PEOPLE
from agentkit_training.tasks.hidden_constraints.hidden_tool import (
    HiddenTool,
    defined,
    plain,
    spoken,
)


def _visit() -> HiddenTool:
    days = {
        f"{day} {month} 2027": (f"2027-{number:02}-{day:02}", f"{day:02}.{number:02}.2027")
        for number, month in enumerate(MONTHS, start=1)
        for day in (3, 7, 12, 18, 24)
    }
    return HiddenTool(
        definition=defined(
            "book_visit",
            "Book a visit to a doctor.",
            {"doctor": ("string", "Name of the doctor."), "day": ("string", "When.")},
        ),
        demands={
            "first": Shaped(
                parameter="day",
                pattern=r"\d{4}-\d{2}-\d{2}",
                words="a date as YYYY-MM-DD",
                example="2026-11-30",
            ),
            "swapped": Shaped(
                parameter="day",
                pattern=r"\d{2}\.\d{2}\.\d{4}",
                words="a date as DD.MM.YYYY",
                example="30.11.2026",
            ),
        },
        templates=(
            "Book a visit to {doctor} on {day}.",
            "I want to see {doctor} on {day}.",
            "Please make an appointment with {doctor} for {day}.",
            "Can {doctor} see me on {day}?",
        ),
        slots=(
            plain("doctor", [f"Dr. {person.split()[1]}" for person in PEOPLE]),
            spoken("day", days, is_entity=True),
        ),
    )


def _order() -> HiddenTool:
    orders = {str(number): (f"ORD-{number}", f"{number}/NL") for number in range(4103, 9900, 97)}
    return HiddenTool(
        definition=defined("track_order", "Track an order.", {"order": ("string", "The order.")}),
        demands={
            "first": Shaped(
                parameter="order",
                pattern=r"ORD-\d{4}",
                words="ORD- and the four digits of the order",
                example="ORD-1234",
            ),
            "swapped": Shaped(
                parameter="order",
                pattern=r"\d{4}/NL",
                words="the four digits of the order and /NL",
                example="1234/NL",
            ),
        },
        templates=(
            "Where is order {order}?",
            "Track order {order}.",
            "What happened to my order {order}?",
            "Please find out where the order with number {order} is.",
        ),
        slots=(spoken("order", orders, is_entity=True),),
    )


def _paint() -> HiddenTool:
    amount = spoken(
        "amount",
        {
            "one litre": (1000, 10),
            "two litres": (2000, 20),
            "three litres": (3000, 30),
            "four litres": (4000, 40),
        },
    )
    return HiddenTool(
        definition=defined(
            "mix_paint",
            "Mix paint.",
            {"colour": ("integer", "Number of the colour."), "amount": ("integer", "How much.")},
        ),
        demands={
            "first": Counted(
                parameter="amount", minimum=1000, maximum=4000, step=1000, unit="millilitres"
            ),
            "swapped": Counted(
                parameter="amount", minimum=10, maximum=40, step=10, unit="decilitres"
            ),
        },
        templates=(
            "Mix {amount} of paint in colour {colour}.",
            "I need {amount} of paint. The colour is number {colour}.",
            "Please mix colour {colour} for me: {amount}.",
            "Can you make {amount} of paint, colour {colour}?",
        ),
        slots=(plain("colour", range(5011, 5990, 23)), amount),
    )


def _rental() -> HiddenTool:
    time = spoken(
        "time",
        {
            "one hour": (60, 6),
            "two hours": (120, 12),
            "three hours": (180, 18),
            "four hours": (240, 24),
        },
    )
    return HiddenTool(
        definition=defined(
            "rent_bike",
            "Rent a bike.",
            {"bike": ("integer", "Number of the bike."), "time": ("integer", "How long.")},
        ),
        demands={
            "first": Counted(parameter="time", minimum=60, maximum=240, step=60, unit="minutes"),
            "swapped": Counted(
                parameter="time", minimum=6, maximum=24, step=6, unit="blocks of ten minutes"
            ),
        },
        templates=(
            "Rent bike {bike} for {time}.",
            "I want bike number {bike} for {time}.",
            "Please rent me bike {bike}; I need it for {time}.",
            "Can I have bike {bike} for {time}?",
        ),
        slots=(plain("bike", range(61, 299, 5)), time),
    )


def measuring_tools() -> Iterator[HiddenTool]:
    """Tools whose demand is a form or a unit."""
    yield _visit()
    yield _order()
    yield _paint()
    yield _rental()
