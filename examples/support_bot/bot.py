"""A support bot over HTTP: customers chat, refunds wait for the desk, nobody sees another's orders.

    python examples/support_bot/bot.py                              # a scripted model, then a tour
    python examples/support_bot/bot.py --serve                      # keep serving
    python examples/support_bot/bot.py --serve --model openai:gpt-4o-mini

It shows a database handle and the customer as dependencies of tools, instructions made for each
run, a guardrail, a billing agent that takes over, answers and progress as a stream, photos of
damage, limits on history and cost, and refunds that a person approves at ``/v1/approvals``. What
``build_app`` gives is a Starlette application; any client of OpenAI's chat completions or Responses
API can talk to it.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx

from agentkit import (
    Agent,
    CapToolResults,
    ChatModel,
    FunctionModel,
    Image,
    KeepLastTurns,
    Keys,
    Limits,
    ModelRequest,
    ModelRetry,
    Rewrite,
    RunContext,
    ServerLimits,
    ToolCall,
    create_app,
    guardrail,
    serve,
    serving,
    tool,
)

KEYS = {"website": "sk-website-0123456789", "desk": "sk-desk-0123456789abc"}
"""The website asks for its customers; the desk decides about refunds."""

ORDERS = [
    ("A17", "ada", "delivered", 49.0),
    ("A18", "ada", "shipped", 12.5),
    ("B03", "ben", "delivered", 99.0),
]
PHOTO = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
"""A very small photo, as a browser sends it."""

_CARD = re.compile(r"\b(?:\d[ -]?){13,19}\b")


@dataclass(frozen=True)
class Customer:
    """Who asks, and a handle of the shop's database."""

    name: str
    database: sqlite3.Connection

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What the database answers."""
        return self.database.execute(query, values).fetchall()


def open_shop(file: Path) -> sqlite3.Connection:
    """Make the shop's database; tools use the handle from threads, and each statement counts."""
    database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    database.execute("CREATE TABLE orders (id, customer, state, euro)")
    database.execute("CREATE TABLE claims (id, media_type, photo)")
    database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", ORDERS)
    return database


def _order(ctx: RunContext[Customer], order: str) -> tuple[Any, ...]:
    """An order of this customer; of others there is none."""
    found = ctx.deps.rows(
        "SELECT id, state, euro FROM orders WHERE id = ? AND customer = ?", order, ctx.deps.name
    )
    if not found:
        raise ModelRetry(f"there is no order {order!r}; look it up with my_orders")
    return found[0]


@tool(effects=["reads"])
def my_orders(ctx: RunContext[Customer]) -> list[str]:
    """List the customer's orders."""
    rows = ctx.deps.rows("SELECT id, state FROM orders WHERE customer = ?", ctx.deps.name)
    for at, (order, _) in enumerate(rows, start=1):
        ctx.progress(f"order {order}, {at} of {len(rows)}")
    return [f"{order}: {state}" for order, state in rows]


@tool(effects=["destructive"])
def refund(ctx: RunContext[Customer], order: Annotated[str, "Its number."]) -> str:
    """Pay an order back. A person approves it first."""
    number, _, euro = _order(ctx, order)
    ctx.deps.rows("UPDATE orders SET state = 'refunded' WHERE id = ?", number)
    return f"{euro:.2f} euros of {number} are on their way"


@tool(effects=["writes"])
def claim(ctx: RunContext[Customer], order: Annotated[str, "Its number."]) -> str:
    """Report an order as damaged, with the photo that the customer sent."""
    number, *_ = _order(ctx, order)
    photo = next((one for one in ctx.media if isinstance(one, Image)), None)
    if photo is None:
        raise ModelRetry("ask the customer for a photo first")
    values = number, photo.media_type, photo.data
    ctx.deps.rows("INSERT INTO claims VALUES (?, ?, ?)", *values)
    return f"the damage of {number} is reported, with a photo of {photo.size} bytes"


@tool(effects=["reads"])
def invoice(ctx: RunContext[Customer], order: Annotated[str, "Its number."]) -> str:
    """Get the price of an order."""
    number, _, euro = _order(ctx, order)
    return f"{number} costs {euro:.2f} euros"


@guardrail("input")
def no_card_numbers(_: RunContext[Customer], request: str) -> Rewrite | None:
    """Card numbers go neither to the model nor into episodes."""
    hidden = _CARD.sub("[card number]", request)
    return Rewrite(hidden) if hidden != request else None


def greeting(ctx: RunContext[Customer]) -> str:
    """Who the model talks to."""
    return f"The customer is {ctx.deps.name.title()}."


def build_agent(model: ChatModel | str, store: str, *, billing: ChatModel | str) -> Agent[Any, str]:
    """The bot, which hands questions about prices over to the billing agent."""
    accountant = Agent(
        billing,
        tools=[invoice],
        deps_type=Customer,
        instructions="You answer questions about prices.",
        name="billing",
    )
    return Agent(
        model,
        tools=[my_orders, refund, claim, accountant.handoff(description="Knows what orders cost.")],
        store=store,
        deps_type=Customer,
        instructions=["You are the support of a shop. Be brief.", greeting],
        guardrails=[no_card_numbers],
        history_processors=[KeepLastTurns(12), CapToolResults(4_000)],
        limits=Limits(max_steps=8, max_calls=12, max_cost_usd=0.05),
        name="support",
    )


def build_app(agent: Agent[Any, str], database: sqlite3.Connection) -> Any:
    """The bot behind OpenAI's wire formats; the website names its customer in a header."""

    def deps_of(request: Any) -> Customer:
        waiting = getattr(request.state, "waiting", None)  # a run that the desk has decided
        name = request.headers.get("x-customer", "")
        return Customer(waiting.metadata["user"] if waiting else name, database)

    photos = ServerLimits(max_body_bytes=8_000_000)
    return create_app(
        agent, keys=Keys(KEYS), limits=photos, approvers=["desk"], deps_factory=deps_of
    )


def scripted_support(request: ModelRequest) -> str | list[ToolCall]:
    """Stands in for a model, so that the example runs anywhere."""
    last = request.messages[-1]
    if last.role == "tool":
        return last.text
    if "refund" in last.text.lower():
        return [_call("refund", order=_number(last.text))]
    if "broken" in last.text.lower():
        return [_call("claim", order=_number(last.text))]
    if "cost" in last.text.lower():
        return [_call("transfer_to_billing")]
    if "orders" in last.text.lower():
        return [_call("my_orders")]
    return f"You wrote: {last.text}"


def scripted_billing(request: ModelRequest) -> str | list[ToolCall]:
    """The same for the billing agent."""
    last = request.messages[-1]
    return last.text if last.role == "tool" else [_call("invoice", order=_number(last.text))]


def _call(name: str, **arguments: str) -> ToolCall:
    return ToolCall(call_id=name, name=name, arguments=arguments)


def _number(text: str) -> str:
    found = re.search(r"[A-Z]\d\d", text)
    return found.group() if found else ""


def tour(url: str) -> None:
    """Show a customer and the desk."""

    def headers(who: str) -> dict[str, str]:
        return {"authorization": f"Bearer {KEYS[who]}", "x-customer": "ada"}

    def ask(text: str, *photos: str) -> None:
        print(f"ada      {text}\nsupport  ", end="")
        content: list[Any] = [{"type": "text", "text": text}]
        for photo in photos:
            image = {"url": f"data:image/png;base64,{photo}"}
            content.append({"type": "image_url", "image_url": image})
        fields = {"model": "support", "session_id": "ada-1", "user": "ada", "stream": True}
        body = {"messages": [{"role": "user", "content": content}], **fields}
        address = f"{url}/v1/chat/completions"
        with httpx.stream("POST", address, headers=headers("website"), json=body) as answer:
            for line in answer.raise_for_status().iter_lines():
                if line.startswith("data: {"):
                    show(json.loads(line.removeprefix("data: ")))
        print()

    def show(piece: dict[str, Any]) -> None:
        progress = piece.get("agentkit", {}).get("progress")
        if progress:
            print(f"({progress['tool']}: {progress['text']})", end=" ")
        for choice in piece["choices"]:
            waits = choice.get("finish_reason") == "tool_calls"
            print(choice["delta"].get("content") or ("(a person decides)" if waits else ""), end="")

    def desk(method: str, path: str, **body: Any) -> Any:
        sent = httpx.request(method, url + path, headers=headers("desk"), json=body or None)
        return sent.raise_for_status().json()

    ask("What are my orders?")
    ask("My card is 4111 1111 1111 1111.")
    ask("What does A17 cost?")
    ask("A17 arrived broken.", PHOTO)
    ask("Refund A17, please.")
    (waiting,) = desk("GET", "/v1/approvals")["data"]
    (call,) = waiting["calls"]
    print(f"desk     {waiting['user']} wants {call['name']} {call['arguments']}: yes")
    decided = desk("POST", f"/v1/approvals/{waiting['id']}", approved=True)
    print(f"support  {decided['content']}")
    ask("What are my orders?")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the bot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", help="such as openai:gpt-4o-mini or local:smollm2-135m")
    parser.add_argument("--serve", action="store_true", help="keep serving on port 8000")
    asked = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_shop(Path(folder, "shop.db"))) as database,
    ):
        agent = build_agent(
            asked.model or FunctionModel(scripted_support),
            f"sqlite:///{folder}/agent.db",
            billing=asked.model or FunctionModel(scripted_billing),
        )
        app = build_app(agent, database)
        if asked.serve:
            serve(app, on_start=lambda url: print(f"serving at {url}; Ctrl-C ends it"))
        else:
            with serving(app) as url:
                tour(url)


if __name__ == "__main__":
    main()
