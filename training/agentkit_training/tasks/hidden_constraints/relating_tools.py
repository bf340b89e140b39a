"""Tools that take what fits something else: another parameter, or another call."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit_training.tasks.hidden_constraints.constraints import Chosen, FoundFirst, Together
from agentkit_training.tasks.hidden_constraints.entities import PEOPLE
from agentkit_training.tasks.hidden_constraints.hidden_tool import (
    WORLDS,
    Filling,
    HiddenTool,
    Slot,
    World,
    defined,
    plain,
    spoken,
)
from agentkit_training.tasks.hidden_constraints.lookups import looked_up


def _table() -> HiddenTool:
    limit = 6
    rooms: dict[World, tuple[str, str]] = {
        "first": ("lounge", "hall"),
        "swapped": ("hall", "lounge"),
    }
    fillings = tuple(
        Filling(
            words=f"{guests} people",
            gold={
                world: {"guests": guests, "room": rooms[world][guests > limit]} for world in WORLDS
            },
        )
        for guests in (2, 3, 4, 5, 8, 9, 10, 12)
    )
    return HiddenTool(
        definition=defined(
            "reserve_table",
            "Reserve a table.",
            {
                "customer": ("integer", "Number of the customer."),
                "guests": ("integer", "Number of people."),
                "room": ("lounge|hall", "Where they sit."),
            },
        ),
        demands={
            world: Chosen(
                parameter="room",
                number="guests",
                limit=limit,
                small=rooms[world][0],
                large=rooms[world][1],
                words=f"The room is {rooms[world][0]} for up to {limit} guests and "
                f"{rooms[world][1]} for more",
            )
            for world in WORLDS
        },
        templates=(
            "Reserve a table for {guests}. The customer is number {customer}.",
            "Customer {customer} wants a table for {guests}.",
            "Please book a table for customer {customer}: {guests}.",
            "Can we have a table for {guests}? I am customer {customer}.",
        ),
        slots=(
            plain("customer", range(6007, 6990, 29)),
            Slot(name="guests", fillings=fillings, is_entity=False),
        ),
    )


def _repair() -> HiddenTool:
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
    return HiddenTool(
        definition=defined(
            "order_repair",
            "Have a machine repaired.",
            {
                "machine": ("integer", "Number of the machine."),
                "deadline": ("string", "Day of the week."),
                "phone": ("integer", "Phone number."),
                "room": ("integer", "Number of the room."),
            },
            optional=("deadline", "phone", "room"),
        ),
        demands={
            "first": Together(parameter="deadline", other="phone"),
            "swapped": Together(parameter="deadline", other="room"),
        },
        templates=(
            "Repair machine {machine} by {deadline}. Room {room}, phone {phone}.",
            "Machine {machine} in room {room} must run again by {deadline}. My phone is {phone}.",
            "Please repair machine {machine} in room {room} until {deadline}; call {phone}.",
        ),
        slots=(
            plain("machine", range(21, 99, 3)),
            spoken("deadline", {day: (day, day) for day in days}),
            plain("phone", range(70113, 79900, 331)),
            plain("room", range(311, 899, 23)),
        ),
    )


def _subscription() -> HiddenTool:
    lookups: dict[World, str] = {"first": "find_customer", "swapped": "find_contract"}
    fillings = tuple(
        Filling(
            words=person,
            gold={world: {"reference": looked_up(lookups[world], person)} for world in WORLDS},
        )
        for person in PEOPLE
    )
    return HiddenTool(
        definition=defined(
            "cancel_subscription",
            "Cancel a subscription.",
            {"reference": ("string", "Whose subscription.")},
        ),
        demands={world: FoundFirst(parameter="reference", tool=lookups[world]) for world in WORLDS},
        templates=(
            "Cancel the subscription of {name}.",
            "{name} wants to end the subscription.",
            "Please stop the subscription of {name}.",
            "End the subscription that {name} has.",
        ),
        slots=(Slot(name="name", fillings=fillings, is_entity=True),),
        lookups=lookups,
    )


def relating_tools() -> Iterator[HiddenTool]:
    """Tools whose demand is about more than one value."""
    yield _table()
    yield _repair()
    yield _subscription()
