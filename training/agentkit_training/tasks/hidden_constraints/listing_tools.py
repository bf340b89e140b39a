"""Tools that take a few words or numbers of their own."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit_training.tasks.hidden_constraints.constraints import Constraint, Listed
from agentkit_training.tasks.hidden_constraints.entities import CITIES
from agentkit_training.tasks.hidden_constraints.hidden_tool import (
    WORLDS,
    HiddenTool,
    Slot,
    World,
    defined,
    plain,
    spoken,
)


def _listed(parameter: str, slot: Slot) -> dict[World, Constraint]:
    """The demand that a parameter takes what the questions can ask for, and nothing else."""
    return {
        world: Listed(
            parameter=parameter,
            values=tuple(dict.fromkeys(one.gold[world][parameter] for one in slot.fillings)),
        )
        for world in WORLDS
    }


def _loan() -> HiddenTool:
    term = spoken("term", {"three years": (36, 12), "four years": (48, 16), "five years": (60, 20)})
    return HiddenTool(
        definition=defined(
            "request_loan",
            "Request a loan.",
            {"amount": ("integer", "How much money."), "term": ("integer", "How long it runs.")},
        ),
        demands=_listed("term", term),
        templates=(
            "Request a loan of {amount} over {term}.",
            "I need a loan of {amount} for {term}.",
            "Please borrow {amount} for me, to be paid back within {term}.",
            "Can I get {amount} as a loan that runs for {term}?",
        ),
        slots=(plain("amount", range(2100, 9900, 130)), term),
    )


def _parcel() -> HiddenTool:
    speed = spoken(
        "speed",
        {
            "as fast as possible": ("express", "priority"),
            "at the usual speed": ("standard", "regular"),
            "as cheaply as possible": ("economy", "saver"),
        },
    )
    return HiddenTool(
        definition=defined(
            "ship_parcel",
            "Ship a parcel.",
            {"city": ("string", "Name of the city."), "speed": ("string", "Kind of transport.")},
        ),
        demands=_listed("speed", speed),
        templates=(
            "Ship my parcel to {city} {speed}.",
            "Send the parcel to {city}, {speed}.",
            "This parcel goes to {city}. Ship it {speed}.",
            "I want a parcel shipped to {city} {speed}, please.",
        ),
        slots=(plain("city", CITIES), speed),
    )


def _money() -> HiddenTool:
    currency = spoken(
        "currency",
        {
            "euros": ("EUR", "EU"),
            "American dollars": ("USD", "US"),
            "British pounds": ("GBP", "UK"),
            "Japanese yen": ("JPY", "JP"),
        },
    )
    return HiddenTool(
        definition=defined(
            "convert_money",
            "Convert money.",
            {
                "amount": ("integer", "How much to convert."),
                "currency": ("string", "The currency to get."),
            },
        ),
        demands=_listed("currency", currency),
        templates=(
            "Convert {amount} into {currency}.",
            "How much is {amount} in {currency}?",
            "I want to change {amount} to {currency}.",
            "Please give me {amount} in {currency}.",
        ),
        slots=(plain("amount", range(110, 990, 17)), currency),
    )


def _invoice() -> HiddenTool:
    method = spoken(
        "method",
        {
            "with my credit card": ("card", "CC"),
            "by bank transfer": ("transfer", "BT"),
            "in cash": ("cash", "CA"),
        },
    )
    return HiddenTool(
        definition=defined(
            "pay_invoice",
            "Pay an invoice.",
            {"number": ("integer", "Number of the invoice."), "method": ("string", "Means.")},
        ),
        demands=_listed("method", method),
        templates=(
            "Pay invoice {number} {method}.",
            "I would like to pay invoice number {number} {method}.",
            "Invoice {number} is due. Pay it {method}.",
            "Please settle invoice {number} {method}.",
        ),
        slots=(plain("number", range(301, 899, 11)), method),
    )


def _stock() -> HiddenTool:
    site = spoken(
        "site",
        {
            "the northern warehouse": ("WH-NORTH", "depot_n"),
            "the southern warehouse": ("WH-SOUTH", "depot_s"),
            "the eastern warehouse": ("WH-EAST", "depot_e"),
            "the western warehouse": ("WH-WEST", "depot_w"),
        },
    )
    return HiddenTool(
        definition=defined(
            "count_stock",
            "Count how many pieces of an article are in stock.",
            {"article": ("integer", "Number of the article."), "site": ("string", "Warehouse.")},
        ),
        demands=_listed("site", site),
        templates=(
            "How many pieces of article {article} are in {site}?",
            "Count article {article} in {site}.",
            "Tell me how much {site} has of article {article}.",
            "What is the stock of article {article} in {site}?",
        ),
        slots=(plain("article", range(1003, 1990, 19)), site),
    )


def listing_tools() -> Iterator[HiddenTool]:
    """Tools whose demand is a list: enums, in words and in units."""
    yield _loan()
    yield _parcel()
    yield _money()
    yield _invoice()
    yield _stock()
