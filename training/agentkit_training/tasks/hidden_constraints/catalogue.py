"""The tools of the family, as data: twelve that demand something, and two to look things up with.

No definition states its demand, and every question holds in plain words what is needed to meet it.
The two worlds differ in the demands alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentkit_training.tasks.hidden_constraints.constraints import (
    Chosen,
    Constraint,
    Counted,
    FoundFirst,
    Listed,
    Shaped,
    Together,
)
from agentkit_training.tasks.hidden_constraints.hidden_tool import (
    WORLDS,
    Filling,
    HiddenTool,
    Slot,
    World,
    plain,
    spoken,
)
from agentkit_training.tasks.hidden_constraints.lookups import (
    CITIES,
    MONTHS,
    PEOPLE,
    defined,
    looked_up,
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


TOOLS: dict[str, HiddenTool] = {
    tool.name: tool for tool in (*listing_tools(), *measuring_tools(), *relating_tools())
}
"""The tools that demand something, by name."""
