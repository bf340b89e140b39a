"""The support bot of the examples, talked to by OpenAI's client as a website and a desk would."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import httpx
import openai
import pytest

from agentkit import open_store
from agentkit.library import EpisodeFilter
from agentkit.server import serving
from agentkit.testing import FunctionModel

FILE = Path(__file__).parents[2] / "examples" / "support_bot" / "bot.py"


@pytest.fixture(scope="module")
def bot():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("support_bot", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["support_bot"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["support_bot"]


@pytest.fixture
def shop(bot, tmp_path):
    """The address of a bot with a shop of its own, and where its episodes are kept."""
    database, store = tmp_path / "shop.db", f"sqlite:///{tmp_path / 'agent.db'}"
    bot.open_shop(database)
    billing = FunctionModel(bot.scripted_billing)
    agent = bot.build_agent(FunctionModel(bot.scripted_support), store, billing=billing)
    with serving(bot.build_app(agent, database)) as url:
        yield url, store


def customer(bot, url, name):
    """Asks for a customer, in one session; gives the events of each answer."""
    headers = {"x-customer": name}
    client = openai.OpenAI(
        base_url=f"{url}/v1", api_key=bot.KEYS["website"], default_headers=headers, max_retries=0
    )

    def ask(text, *parts):
        fields = {"extra_body": {"session_id": name}, "user": name, "stream": True}
        content = [{"type": "text", "text": text}, *parts] if parts else text
        messages = [{"role": "user", "content": content}]
        chunks = list(client.chat.completions.create(model="support", messages=messages, **fields))
        said = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
        return said, [one.model_extra.get("agentkit") for one in chunks if one.model_extra]

    return ask


def test_customers_see_their_own_orders_and_progress(bot, shop):
    """The handle and the name come with the request; what tools say of progress is streamed."""
    url, _ = shop
    said, extras = customer(bot, url, "ada")("What are my orders?")
    assert said == '["A17: delivered","A18: shipped"]'
    progress = [one["progress"]["text"] for one in extras if one and "progress" in one]
    assert progress == ["order A17, 1 of 2", "order A18, 2 of 2"]
    assert "no order 'A17'" in customer(bot, url, "ben")("What does A17 cost?")[0]


def test_billing_takes_over_and_the_session_goes_on(bot, shop):
    """The stream says so and goes on with its answer; both runs are one conversation."""
    url, store = shop
    ada = customer(bot, url, "ada")
    said, extras = ada("What does A17 cost?")
    assert said == "A17 costs 49.00 euros"
    assert {"tool": "billing", "text": "takes over"} in [
        (one or {}).get("progress") for one in extras
    ]
    assert ada("What are my orders?")[0] == '["A17: delivered","A18: shipped"]'
    with closing(open_store(store)) as kept:
        first, second = kept.select(EpisodeFilter(oldest_first=True))
    assert first.results[0].value["agent"] == "billing"
    assert (first.output, second.history_length) == ("A17 costs 49.00 euros", 4)


def test_a_photo_of_damage_is_uploaded(bot, shop, tmp_path):
    """The model sees it, the tool that reports the damage finds it, and a false one is refused."""
    url, store = shop
    ada = customer(bot, url, "ada")

    def photo(media_type):
        image = {"url": f"data:{media_type};base64,{bot.PHOTO}"}
        return {"type": "image_url", "image_url": image}

    assert "ask the customer for a photo" in ada("A17 is broken")[0]
    with pytest.raises(openai.BadRequestError, match="its bytes are image/png"):
        ada("A17 is broken", photo("image/jpeg"))
    said, _ = ada("A17 is broken", photo("image/png"))
    assert said == "the damage of A17 is reported, with a photo of 69 bytes"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert database.execute("SELECT id, media_type, length(photo) FROM claims").fetchall() == [
            ("A17", "image/png", 69)
        ]
    with closing(open_store(store)) as kept:
        (medium,) = next(iter(kept.select())).media
    assert medium.base64 == bot.PHOTO


def test_refunds_wait_for_the_desk(bot, shop):
    """The desk decides, the run goes on for the customer who asked, and nothing runs twice."""
    url, _ = shop
    ada = customer(bot, url, "ada")
    ada("Refund A17")
    desk = {"authorization": f"Bearer {bot.KEYS['desk']}"}
    (waiting,) = httpx.get(f"{url}/v1/approvals", headers=desk).json()["data"]
    decide = {"headers": desk, "json": {"approved": True}}
    decided = httpx.post(f"{url}/v1/approvals/{waiting['id']}", **decide)
    assert decided.json()["content"] == "49.00 euros of A17 are on their way"
    assert httpx.post(f"{url}/v1/approvals/{waiting['id']}", **decide).status_code == 409
    assert "A17: refunded" in ada("What are my orders?")[0]
    own = {"authorization": f"Bearer {bot.KEYS['website']}"}
    assert httpx.get(f"{url}/v1/approvals", headers=own).json()["data"] == []


def test_card_numbers_are_kept_nowhere(bot, shop):
    """The guardrail hides them before the model and the store see them."""
    url, store = shop
    said, _ = customer(bot, url, "ada")("My card is 4111 1111 1111 1111.")
    assert said == "You wrote: My card is [card number]."
    with closing(open_store(store)) as kept:
        (episode,) = kept.select()
    assert "4111" not in str(episode.to_json())


def test_the_tour_runs(bot, capsys):
    """The command that the file names shows a customer and the desk."""
    bot.main([])
    shown = capsys.readouterr().out
    assert "A17 costs 49.00 euros" in shown
    assert "reported, with a photo of 69 bytes" in shown
    assert "49.00 euros of A17 are on their way" in shown
