"""Later prompts go on from the tokens that were written, and say what the template says."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings, strategies as st

from agentkit import tool
from agentkit.messages import (
    AssistantMessage,
    ProviderItem,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit_training import tiny_policy
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
