"""A small library that looks like a real one: weather, calendar, money and used cars.

All four levels of each definition are filled, and every tool runs: the functions are pure and
answer from fixed data, so that the worked examples (L4) can be checked by calling them. The
effectful ones return what they would have returned and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.testing import sample_tools
from agentkit.tools.definition import (
    Effects,
    Example,
    Origin,
    Specification,
    ToolDefinition,
)
from agentkit.tools.tool import Tool

_READS = Effects(reads=True, writes=False)
_PURE = Effects(reads=False, writes=False, idempotent=True, open_world=False)
_WRITES = Effects(reads=True, writes=True)
_DESTROYS = Effects(reads=True, writes=True, destructive=True, idempotent=True)


def _sample(
    function: Callable[..., Any],
    summary: str,
    parameters: Mapping[str, JsonObject],
    *,
    result: JsonObject,
    effects: Effects,
    specification: Specification,
    examples: tuple[Example, ...],
    optional: tuple[str, ...] = (),
    tags: tuple[str, ...],
) -> Tool:
    name = function.__name__
    definition = ToolDefinition.from_schema(
        name,
        summary,
        {
            "type": "object",
            "properties": dict(parameters),
            "required": [parameter for parameter in parameters if parameter not in optional],
            "additionalProperties": False,
        },
        result=result,
        effects=effects,
        tags=tags,
        origin=Origin(kind="function", reference=f"{function.__module__}:{name}"),
    )
    complete = replace(definition, specification=specification, examples=examples)
    return Tool(definition=complete, function=function)


_CITY = {"type": "string", "description": "City name in English, such as Paris."}
_WEATHER_TOOLS = (
    _sample(
        sample_tools.weather_now,
        "Current temperature in a city. For coming days use weather_forecast.",
        {
            "city": _CITY,
            "unit": {
                "type": "string",
                "enum": ["celsius", "fahrenheit"],
                "default": "celsius",
                "description": "Unit of the answer.",
            },
        },
        optional=("unit",),
        result={
            "type": "object",
            "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
        },
        effects=Effects(reads=True, writes=False, open_world=True),
        specification=Specification(
            pre=("len(city) > 0",),
            post=("result['city'] == city",),
            text=("The city has a weather station.",),
            complexity="one request to the weather service",
        ),
        examples=(
            Example(
                arguments={"city": "Oslo"},
                result={"city": "Oslo", "degrees": 7.5},
                query="Do I need a coat in Oslo right now?",
            ),
            Example(
                arguments={"city": "Paris", "unit": "fahrenheit"},
                result={"city": "Paris", "degrees": 64.4},
                query="What is it in Paris, in Fahrenheit?",
            ),
        ),
        tags=("weather",),
    ),
    _sample(
        sample_tools.weather_forecast,
        "Expected temperature in degrees Celsius for each of the coming days.",
        {
            "city": _CITY,
            "days": {
                "type": "integer",
                "minimum": 1,
                "maximum": 7,
                "description": "How many days, tomorrow first.",
            },
        },
        result={"type": "array", "items": {"type": "number"}},
        effects=Effects(reads=True, writes=False, open_world=True),
        specification=Specification(
            pre=("days >= 1", "days <= 7"),
            post=("len(result) == days",),
            text=("The city has a weather station.",),
            complexity="one request to the weather service",
        ),
        examples=(
            Example(
                arguments={"city": "Tokyo", "days": 2},
                result=[22.0, 22.5],
                query="How warm will Tokyo be over the next two days?",
            ),
        ),
        tags=("weather", "planning"),
    ),
)


_DAY = {"type": "string", "format": "date", "description": "Day as YYYY-MM-DD."}
_START = {
    "type": "string",
    "pattern": "^[0-2][0-9]:00$",
    "description": "Start as HH:00, 24-hour clock.",
}
_EVENT = {
    "type": "object",
    "properties": {"start": {"type": "string"}, "title": {"type": "string"}},
}
_CALENDAR_TOOLS = (
    _sample(
        sample_tools.calendar_list_events,
        "What is in the calendar on one day.",
        {"day": _DAY},
        result={"type": "array", "items": _EVENT},
        effects=_READS,
        specification=Specification(
            pre=("len(day) == 10",),
            text=("Events are in order of their start.",),
            complexity="one database read",
        ),
        examples=(
            Example(
                arguments={"day": "2026-03-02"},
                result=[
                    {"start": "09:00", "title": "Stand-up"},
                    {"start": "14:00", "title": "Budget review"},
                ],
                query="What do I have on 2 March 2026?",
            ),
        ),
        tags=("calendar",),
    ),
    _sample(
        sample_tools.calendar_find_slot,
        "First free time of a working day that is long enough. Use it before creating events.",
        {
            "day": _DAY,
            "hours": {
                "type": "integer",
                "minimum": 1,
                "maximum": 8,
                "description": "Length in hours.",
            },
        },
        result={"type": ["string", "null"]},
        effects=_READS,
        specification=Specification(
            pre=("len(day) == 10", "hours >= 1", "hours <= 8"),
            text=("The answer is null when the day is full.",),
            complexity="one database read",
        ),
        examples=(
            Example(
                arguments={"day": "2026-03-02", "hours": 3},
                result="10:00",
                query="When could we meet for three hours on 2 March 2026?",
            ),
        ),
        tags=("calendar", "planning"),
    ),
    _sample(
        sample_tools.calendar_create_event,
        "Book an event of one hour.",
        {
            "day": _DAY,
            "start": _START,
            "title": {"type": "string", "minLength": 1, "description": "What it is about."},
        },
        result={
            "type": "object",
            "properties": {"event_id": {"type": "string"}, "title": {"type": "string"}},
        },
        effects=_WRITES,
        specification=Specification(
            pre=("len(day) == 10", "len(title) > 0"),
            post=("result['title'] == title",),
            text=("The time is free; calendar_find_slot tells.",),
            complexity="one database write",
        ),
        examples=(
            Example(
                arguments={"day": "2026-03-03", "start": "10:00", "title": "Dentist"},
                result={"event_id": "2026-03-03T10:00", "title": "Dentist"},
                query="Put the dentist on 3 March 2026 at ten.",
            ),
        ),
        tags=("calendar",),
    ),
    _sample(
        sample_tools.calendar_cancel_event,
        "Delete an event. This can not be undone.",
        {"event_id": {"type": "string", "description": "Id that calendar_create_event gave."}},
        result={"type": "boolean"},
        effects=_DESTROYS,
        specification=Specification(
            pre=("len(event_id) > 0",),
            text=("The answer is false when there is no such event.",),
            complexity="one database write",
        ),
        examples=(
            Example(
                arguments={"event_id": "2026-03-02T14:00"},
                result=True,
                query="Cancel the budget review.",
            ),
        ),
        tags=("calendar",),
    ),
)


_AMOUNT = {"type": "number", "exclusiveMinimum": 0, "description": "Amount of money."}
_CURRENCY = {"type": "string", "enum": sorted(sample_tools.RATES), "description": "ISO 4217 code."}
_MONEY_TOOLS = (
    _sample(
        sample_tools.currency_convert,
        "Convert an amount of money from one currency to another.",
        {"amount": _AMOUNT, "source": _CURRENCY, "target": _CURRENCY},
        result={"type": "number"},
        effects=Effects(reads=True, writes=False, open_world=True),
        specification=Specification(
            pre=("amount > 0",),
            post=("result >= 0",),
            text=("Rates are those of the last working day.",),
            complexity="one request to the rates service",
        ),
        examples=(
            Example(
                arguments={"amount": 100, "source": "USD", "target": "GBP"},
                result=64.0,
                query="How much is 100 dollars in pounds?",
            ),
        ),
        tags=("money",),
    ),
    _sample(
        sample_tools.loan_monthly_payment,
        "Monthly payment of a loan that is paid back in equal parts.",
        {
            "amount": _AMOUNT,
            "annual_rate_percent": {
                "type": "number",
                "minimum": 0,
                "description": "Yearly interest in percent: 4.8 means 4.8 %.",
            },
            "months": {
                "type": "integer",
                "enum": [36, 48, 60],
                "description": "Term in months.",
            },
        },
        result={"type": "number"},
        effects=_PURE,
        specification=Specification(
            pre=("amount > 0", "annual_rate_percent >= 0", "months in [36, 48, 60]"),
            post=("result * months >= amount - 1",),
            text=("Fees are not part of the payment.",),
            complexity="O(1)",
        ),
        examples=(
            Example(
                arguments={"amount": 12000, "annual_rate_percent": 0, "months": 48},
                result=250.0,
                query="12,000 over four years without interest, what is that a month?",
            ),
            Example(
                arguments={"amount": 10000, "annual_rate_percent": 6, "months": 36},
                result=304.22,
                query="What would 10,000 at 6 % cost me a month for three years?",
            ),
        ),
        tags=("money", "cars"),
    ),
    _sample(
        sample_tools.bill_split,
        "What each person pays of a shared bill.",
        {
            "amount": _AMOUNT,
            "people": {"type": "integer", "minimum": 1, "description": "How many pay."},
            "tip_percent": {
                "type": "number",
                "minimum": 0,
                "default": 0,
                "description": "Tip on top, in percent.",
            },
        },
        optional=("tip_percent",),
        result={"type": "number"},
        effects=_PURE,
        specification=Specification(
            pre=("amount > 0", "people >= 1"),
            post=("result > 0",),
            complexity="O(1)",
        ),
        examples=(
            Example(
                arguments={"amount": 90, "people": 4, "tip_percent": 10},
                result=24.75,
                query="Four of us share 90 euros and leave a 10 % tip.",
            ),
        ),
        tags=("money",),
    ),
)


_STOCK_ID = {"type": "string", "pattern": "^C-[0-9]+$", "description": "Id of a car in stock."}
_CAR = {
    "type": "object",
    "properties": {
        "stock_id": {"type": "string"},
        "make": {"type": "string"},
        "model": {"type": "string"},
        "year": {"type": "integer"},
        "price": {"type": "number"},
    },
}
_USED_CARS_TOOLS = (
    _sample(
        sample_tools.cars_search,
        "Find used cars in stock. Gives stock ids, cheapest first.",
        {
            "make": {"type": "string", "description": "Maker, such as Toyota."},
            "max_price": {"type": "number", "description": "Highest price in euros."},
            "min_year": {"type": "integer", "description": "Earliest year of registration."},
        },
        optional=("make", "max_price", "min_year"),
        result={"type": "array", "items": {"type": "string"}},
        effects=_READS,
        specification=Specification(
            text=("Without arguments it gives all cars.",),
            complexity="one database read",
        ),
        examples=(
            Example(
                arguments={"make": "Toyota", "max_price": 14000},
                result=["C-103", "C-101"],
                query="Do you have a Toyota for less than 14,000?",
            ),
        ),
        tags=("cars",),
    ),
    _sample(
        sample_tools.cars_details,
        "Make, model, year and price of one car.",
        {"stock_id": _STOCK_ID},
        result=_CAR,
        effects=_READS,
        specification=Specification(
            pre=("len(stock_id) > 2",),
            post=("result['stock_id'] == stock_id",),
            text=("The car is in stock.",),
            complexity="one database read",
        ),
        examples=(
            Example(
                arguments={"stock_id": "C-102"},
                result={
                    "stock_id": "C-102",
                    "make": "Volvo",
                    "model": "V60",
                    "year": 2019,
                    "price": 21500,
                },
                query="Tell me more about C-102.",
            ),
        ),
        tags=("cars",),
    ),
    _sample(
        sample_tools.cars_reserve,
        "Hold a car for a customer for three days.",
        {
            "stock_id": _STOCK_ID,
            "customer": {"type": "string", "minLength": 1, "description": "Full name."},
        },
        result={
            "type": "object",
            "properties": {"reservation": {"type": "string"}, "customer": {"type": "string"}},
        },
        effects=_WRITES,
        specification=Specification(
            pre=("len(customer) > 0",),
            post=("result['customer'] == customer",),
            text=("The car is in stock and the customer agreed.",),
            complexity="one database write",
        ),
        examples=(
            Example(
                arguments={"stock_id": "C-104", "customer": "Ada Lovelace"},
                result={"reservation": "R-C-104", "customer": "Ada Lovelace"},
                query="Please hold the Zoe for me. Ada Lovelace.",
            ),
        ),
        tags=("cars",),
    ),
    _sample(
        sample_tools.dealer_policy,
        "What the dealer promises about returns, warranty or trade-in.",
        {
            "topic": {
                "type": "string",
                "enum": sorted(sample_tools.POLICIES),
                "description": "What the question is about.",
            }
        },
        result={"type": "string"},
        effects=_READS,
        specification=Specification(
            post=("len(result) > 0",),
            text=("Quote the text; do not promise more.",),
            complexity="O(1)",
        ),
        examples=(
            Example(
                arguments={"topic": "returns"},
                result="A car may be returned within 14 days and 500 km.",
                query="Can I bring the car back if I do not like it?",
            ),
        ),
        tags=("cars", "policy"),
    ),
)


def sample_library() -> Library:
    """The thirteen sample tools, bound to their functions; version 0, for it is in no store.

    Example:
        >>> library = sample_library()
        >>> len(library), library["currency_convert"](amount=10, source="EUR", target="USD")
        (13, 12.5)
    """
    return Library([*_WEATHER_TOOLS, *_CALENDAR_TOOLS, *_MONEY_TOOLS, *_USED_CARS_TOOLS])
