"""``sample_library``: a small library that looks like a real one: weather, calendar, money, cars.

All four levels of each definition are filled (``sample_tools.jsonl``), and every tool runs: the
functions are pure and answer from fixed data, so that the worked examples (L4) can be checked by
calling them. The effectful ones return what they would have returned and change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentkit.errors import ModelRetry
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def sample_library() -> Library:
    """The sample tools, bound to their functions; version 0, for it is in no store.

    Example:
        >>> library = sample_library()
        >>> len(library), library["bill_split"](amount=90, people=3)
        (13, 30.0)
    """
    return Library(read_tools("sample_tools.jsonl", globals()))


def read_tools(file_name: str, functions: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The definitions of a file beside this one, each bound to the function of its name."""
    lines = Path(__file__).with_name(file_name).read_text(encoding="utf-8").splitlines()
    definitions = [ToolDefinition.from_json(json.loads(line)) for line in lines]
    return tuple(Tool(definition=one, function=functions[one.name]) for one in definitions)


_CELSIUS = {"Paris": 18.0, "Oslo": 7.5, "Nairobi": 24.0, "Tokyo": 21.5}
RATES = {"EUR": 1.0, "USD": 1.25, "GBP": 0.8, "JPY": 160.0}
_BOOKED = {"2026-03-02": (("09:00", "Stand-up"), ("14:00", "Budget review")), "2026-03-03": ()}
_CARS: tuple[JsonObject, ...] = (
    {"stock_id": "C-101", "make": "Toyota", "model": "Yaris", "year": 2021, "price": 13900},
    {"stock_id": "C-102", "make": "Volvo", "model": "V60", "year": 2019, "price": 21500},
    {"stock_id": "C-103", "make": "Toyota", "model": "Corolla", "year": 2018, "price": 12400},
    {"stock_id": "C-104", "make": "Renault", "model": "Zoe", "year": 2022, "price": 17800},
)
POLICIES = {
    "returns": "A car may be returned within 14 days and 500 km.",
    "warranty": "Every car has 12 months of warranty on engine and gearbox.",
    "trade_in": "We take your old car in payment after an inspection.",
}


def weather_now(city: str, unit: str = "celsius") -> dict[str, Any]:
    """Current temperature of a known city."""
    degrees = _temperature(city)
    return {"city": city, "degrees": degrees if unit == "celsius" else degrees * 9 / 5 + 32}


def weather_forecast(city: str, days: int) -> list[float]:
    """One temperature for each of the coming days."""
    today = _temperature(city)
    return [today + day / 2 for day in range(1, days + 1)]


def _temperature(city: str) -> float:
    if city not in _CELSIUS:
        raise ModelRetry(f"no weather station in {city!r}; known: {', '.join(_CELSIUS)}")
    return _CELSIUS[city]


def calendar_list_events(day: str) -> list[dict[str, str]]:
    """Events of one day in order of their start."""
    return [{"start": start, "title": title} for start, title in _BOOKED.get(day, ())]


def calendar_find_slot(day: str, hours: int) -> str | None:
    """First free start of a working day (08:00 to 18:00); events last one hour."""
    taken = {int(start[:2]) for start, _ in _BOOKED.get(day, ())}
    starts = range(8, 18 - hours + 1)
    free = (s for s in starts if not taken.intersection(range(s, s + hours)))
    first = next(free, None)
    return None if first is None else f"{first:02}:00"


def calendar_create_event(day: str, start: str, title: str) -> dict[str, str]:
    """The event as it would be booked."""
    return {"event_id": f"{day}T{start}", "title": title}


def calendar_cancel_event(event_id: str) -> bool:
    """Whether there was such an event to cancel."""
    day, _, start = event_id.partition("T")
    return any(start == booked for booked, _ in _BOOKED.get(day, ()))


def currency_convert(amount: float, source: str, target: str) -> float:
    """The amount in another currency, rounded to cents."""
    return round(amount / RATES[source] * RATES[target], 2)


def loan_monthly_payment(amount: float, annual_rate_percent: float, months: int) -> float:
    """Payment of an annuity loan, rounded to cents."""
    rate = annual_rate_percent / 1200
    if rate == 0:
        return round(amount / months, 2)
    return round(amount * rate / (1 - (1 + rate) ** -months), 2)


def bill_split(amount: float, people: int, tip_percent: float = 0) -> float:
    """What each person pays, rounded to cents."""
    return round(amount * (1 + tip_percent / 100) / people, 2)


def cars_search(
    make: str | None = None, max_price: float | None = None, min_year: int | None = None
) -> list[str]:
    """Stock ids of the cars that match, cheapest first."""
    matching = [
        car
        for car in _CARS
        if (make is None or car["make"] == make)
        and (max_price is None or car["price"] <= max_price)
        and (min_year is None or car["year"] >= min_year)
    ]
    return [str(car["stock_id"]) for car in sorted(matching, key=lambda car: car["price"])]


def cars_details(stock_id: str) -> dict[str, Any]:
    """Everything about one car."""
    for car in _CARS:
        if car["stock_id"] == stock_id:
            return dict(car)
    raise ModelRetry(f"no car {stock_id!r} in stock; take an id from cars_search")


def cars_reserve(stock_id: str, customer: str) -> dict[str, str]:
    """The reservation as it would be made."""
    return {"reservation": f"R-{cars_details(stock_id)['stock_id']}", "customer": customer}


def dealer_policy(topic: str) -> str:
    """What the dealer promises about a topic."""
    return POLICIES[topic]
