"""Prompts in the tokenizer's chat template: later ones continue the written tokens."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings, strategies as st

from agentkit import Agent, tool
from agentkit.errors import UsageError
from agentkit.messages import (
    AssistantMessage,
    ProviderItem,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.models.base import ModelResponse
from agentkit_training import PolicyModel, collect, tiny_policy, token_sequences
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import CHAT_TEMPLATES
from agentkit_training.rollout.policy_model import TemplatedModel
from agentkit_training.rollout.rendering import PROTOCOL, Renderer, WrittenAnswer


@tool
def get_price(item: str) -> int:
    """Get the price of an item.

    Args:
        item: What is sold.
    """
    return len(item)


TOOLS = (get_price.definition,)
PLAIN, WITH_TOOLS = tiny_policy(), tiny_policy(chat_template="chatml-tools")
TRIMMING = tiny_policy(
    chat_template=PLAIN.tokenizer.chat_template.replace(
        "message['content']", "(message['content'] | trim)"
    )
)
THINKING = tiny_policy(
    chat_template=PLAIN.tokenizer.chat_template.replace(
        "message['content']", "message['content'].split('</think>')[-1]"
    )
)
LOOKING_BACK = tiny_policy(
    chat_template="{{ 'Turns: ' ~ messages | length }}" + PLAIN.tokenizer.chat_template
)

END = PLAIN.tokenizer.eos_token_id
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="<|>"), max_size=24
)  # a special token inside a text is read as such, here as in any server
ANSWER_IDS = st.lists(
    st.integers(3, len(PLAIN.tokenizer) - 1), max_size=12
)  # any tokens but special ones, also such as no tokenizer makes of their text


_BROKEN = "\N{REPLACEMENT CHARACTER}"  # parts of characters are no text
_WHOLE = [n for n in range(3, len(PLAIN.tokenizer)) if _BROKEN not in PLAIN.tokenizer.decode([n])]
WHOLE_IDS = st.lists(st.sampled_from(_WHOLE), max_size=12)


class Talk:
    """A conversation that grows, with answers of given tokens."""

    def __init__(self, policy, *, tools=()):
        self.renderer, self.tools = Renderer(policy), tools
        self.messages, self.known = [], {}
        self.read, self.written = [], []

    def say(self, *messages):
        self.messages += messages
        return self

    def ask(self):
        self.prompt = self.renderer.prompt(self.messages, self.known, tools=self.tools)
        return self.prompt

    def answer(self, ids, *, is_ended=True, calls=()):
        asked, number = self.ask(), str(len(self.known) + 1)
        text = self.renderer.said(ids)
        ids = (*ids, END) if is_ended else tuple(ids)
        self.known[number] = WrittenAnswer(ids=asked.ids + ids, asked=asked.text, is_ended=is_ended)
        item = ProviderItem(protocol=PROTOCOL, data={"answer": number})
        self.messages.append(AssistantMessage(text=text, tool_calls=calls, provider_items=(item,)))
        return asked.ids + ids


@st.composite
def conversations(draw, policy, tools=(), ids=ANSWER_IDS):
    """A system message, then turns: something said or done by a tool, and an answer to it."""
    talk, grown = Talk(policy, tools=tools), []
    if draw(st.booleans()):
        talk.say(SystemMessage(text=draw(WORDS)))
    for number in range(draw(st.integers(1, 4))):
        calls = ()
        if number and talk.messages[-1].tool_calls:
            name = get_price.definition.name
            talk.say(
                *(
                    ToolMessage(call_id=c.call_id, name=name, text=draw(WORDS))
                    for c in talk.messages[-1].tool_calls
                )
            )
        else:
            talk.say(UserMessage(text=draw(WORDS)))
        if tools and draw(st.booleans()):
            arguments = {"item": draw(WORDS)}
            calls = tuple(
                ToolCall(call_id=f"c{number}{n}", name="get_price", arguments=arguments)
                for n in range(draw(st.integers(1, 2)))
            )
        grown.append(talk.answer(draw(ids), is_ended=draw(st.booleans()), calls=calls))
    talk.say(UserMessage(text=draw(WORDS)))
    return talk, grown


@settings(max_examples=60, deadline=None)
@given(conversations(PLAIN))
def test_each_later_prompt_begins_with_the_earlier_prompt_and_its_answer(made):
    """Whatever tokens were written, ended or cut, they stand in the next prompt as they were."""
    talk, grown = made
    for earlier, later in zip(grown, [*grown[1:], talk.ask().ids], strict=True):
        assert later[: len(earlier)] == earlier
    assert not talk.prompt.is_retokenised
    assert not talk.prompt.is_retokenised


@settings(max_examples=60, deadline=None)
@given(conversations(PLAIN, ids=WHOLE_IDS))
def test_the_tokens_of_a_prompt_say_what_the_template_writes(made):
    """Read as text, the prompt is the template's, though its tokens were never read again."""
    talk, _ = made
    prompt = talk.ask()
    assume(_BROKEN not in prompt.text)  # somebody may have said that, too
    assert talk.renderer.said(prompt.ids) == prompt.text
    assert prompt.text == talk.renderer.text(talk.messages, asks=True)


@settings(max_examples=60, deadline=None)
@given(conversations(WITH_TOOLS, TOOLS))
def test_calls_and_results_of_a_template_keep_the_tokens_too(made):
    """With tools, calls and results in the template, later prompts go on from what was written."""
    talk, grown = made
    for earlier, later in zip(grown, [*grown[1:], talk.ask().ids], strict=True):
        assert later[: len(earlier)] == earlier
    last = talk.renderer.said(talk.prompt.ids[len(grown[-1]) :])
    assert talk.prompt.text.endswith(last)
    assert last.startswith("\n" if grown[-1][-1] == END else "<|im_end|>\n")


@settings(max_examples=30, deadline=None)
@given(conversations(TRIMMING))
def test_a_template_that_trims_goes_on_all_the_same(made):
    """White space that a template takes from an answer was written nevertheless, and stays."""
    talk, grown = made
    assert talk.ask().ids[: len(grown[-1])] == grown[-1]


def test_a_cut_answer_is_ended_by_the_template():
    """An answer that reached its length has no end token; the prompt goes on with one."""
    talk = Talk(PLAIN).say(UserMessage(text="Count!"))
    grown = talk.answer((40, 41, 42), is_ended=False)
    rest = talk.say(UserMessage(text="Go on.")).ask().ids[len(grown) :]
    assert talk.renderer.said(rest).startswith("<|im_end|>\n<|im_start|>user\nGo on.")


@pytest.mark.parametrize("policy", [THINKING, LOOKING_BACK])
def test_a_template_that_rewrites_is_tokenised_again(policy):
    """Where a template changes what was said, the prompt is what it writes, and says so."""
    talk = Talk(policy).say(UserMessage(text="Hi"))
    ids = policy.tokenizer("Hm.</think>Ho", add_special_tokens=False)["input_ids"]
    talk.answer(tuple(ids))
    prompt = talk.say(UserMessage(text="And?")).ask()
    assert prompt.is_retokenised
    assert prompt.ids == talk.renderer.tokens(talk.renderer.text(talk.messages, asks=True))


def test_other_tools_make_another_prompt():
    """When other tools are offered than before, the prompt offers those and no longer the old."""
    talk = Talk(WITH_TOOLS, tools=TOOLS).say(UserMessage(text="Hi"))
    talk.answer((40, 41))
    talk.tools = ()
    prompt = talk.say(UserMessage(text="And?")).ask()
    assert prompt.is_retokenised
    assert "get_price" not in talk.renderer.said(prompt.ids)


@tool(name="shop.get_price")
def get_shop_price(item: str, units: list[str] | None = None) -> int:
    """Get the price of an item.

    Args:
        item: What is sold.
        units: Its units.
    """
    return len(item)


class Scripted:
    """A model that renders what it is asked as the policy would, and answers from a list."""

    name = "scripted"

    def __init__(self, *answers):
        self.answers, self.prompts = list(answers), []
        self.renderer = Renderer(tiny_policy(chat_template="chatml-tools"))

    async def complete(self, request):
        text = self.renderer.text(request.messages, asks=True, tools=request.tools)
        self.prompts.append(text)
        return ModelResponse(message=AssistantMessage(text=self.answers.pop(0)))


def call(name="shop_get_price", **arguments):
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_tools_calls_and_results_go_through_the_template():
    """The agent runs the call that the answer holds, and the template shows call and result."""
    inner = Scripted(f"Let me see.\n{call(item='apple', units=['kg'])}", "It costs 5.")
    agent = Agent(TemplatedModel(inner), tools=[get_shop_price])
    episode = agent.run_sync("What does it cost?").episode
    first, second = inner.prompts
    assert '"name": "shop_get_price"' in first
    assert '"required": ["item"]' in first
    assert second.startswith(first)
    assert 'Let me see.\n<tool_call>\n{"name": "shop_get_price", "arguments": ' in second
    assert '{"item": "apple", "units": ["kg"]}' in second
    assert "<tool_response>\n5\n</tool_response><|im_end|>" in second
    made = [one.name for turn in episode.turns for one in turn.message.tool_calls]
    assert made == ["shop.get_price"]
    assert episode.turns[-1].message.text == "It costs 5."


async def test_rollouts_with_tools_in_the_template_are_token_exact(shop):
    """A policy that reads its tools from the template gives one sequence for each rollout."""
    model = PolicyModel(
        tiny_policy(chat_template="chatml-tools"), tools_in="template", max_tokens=8
    )
    rollouts = await collect(model, shop, attempts=2)
    for one in rollouts:
        (sequence,) = one.sequences
        said = model_text(model, sequence.prompt)
        assert '<tools>\n{"type": "function", "function": {"name": "get_price"' in said


def model_text(model, ids):
    return model._engine._renderer.said(ids)


async def test_turns_with_calls_make_one_sequence(writing):
    """When the policy calls a tool, its answers and the result between them are one sequence."""
    inner = Scripted(call(item="apple"), "It costs 5.")
    await Agent(TemplatedModel(inner), tools=[get_shop_price]).run("What does it cost?")
    first, second = inner.prompts
    between = "\n<|im_start|>user\n<tool_response>\n5\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    assert second.endswith(between)
    policy, left = WITH_TOOLS, [call(item="apple"), "It costs 5."]
    writer = writing(policy.tokenizer, lambda _: left.pop(0))
    agent = Agent(PolicyModel(policy, tools_in="template", writer=writer), tools=[get_shop_price])
    episode = (await agent.run("What does it cost?")).episode
    assert episode.turns[-1].message.text == "It costs 5."
    (sequence,) = token_sequences([episode])
    read = [t for t, own in zip(sequence.completion, sequence.written, strict=True) if not own]
    assert policy.tokenizer.decode(read) == between
    assert policy.tokenizer.decode(sequence.prompt) == first


@pytest.mark.parametrize(
    ("template", "lacks"),
    [
        (CHAT_TEMPLATES["chatml"], "has no place for tools"),
        ("{{ tools }}" + CHAT_TEMPLATES["chatml"], "has no place for calls"),
        ("{{ tools }}{% for m in messages %}{{ m.tool_calls }}{% endfor %}", "place for results"),
        ("{{ raise_exception('no tools here') }}", "can not be offered tools"),
    ],
)
def test_a_template_without_tools_is_refused(template, lacks):
    """The error comes when the model is made, says what is missing and what to do."""
    policy = tiny_policy(chat_template=template)
    with pytest.raises(PolicyError, match=lacks) as caught:
        PolicyModel(policy, tools_in="template")
    assert "tools_in='prompt'" in str(caught.value)
    assert "chatml-tools" in str(caught.value)


def test_an_unknown_way_is_refused(policy):
    """Tools travel in the prompt or in the template."""
    with pytest.raises(UsageError, match="'prompt' or 'template'"):
        PolicyModel(policy, tools_in="system")
