"""Writing a conversation as tokens, so that what the model once wrote stays the tokens it wrote.

Text that is tokenised again need not give the same tokens, and a policy must be trained on those
that it chose. So an answer of this process is put in as it was written, and only what came after it
is tokenised: the ends of turns, tool results, the next question. Apart from the answers themselves
the prompt is what the template writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agentkit.models.chat_completions import encode_tool
from agentkit.models.wire import MALFORMED_KEY, WireNames
from agentkit.tools.definition import ToolDefinition
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


TemplateData: TypeAlias = dict[str, Any]
"""A message or a tool, as Jinja walks through it key by key."""

PROBE = ToolDefinition.from_schema(
    "probe_the_template",
    "Look whether the template writes this.",
    {"type": "object", "properties": {"probed": {"type": "string"}}},
)
"""A tool that is shown to a template to see whether it has a place for tools."""

PROBED_CALL, PROBED_RESULT = "probed_call", "probed_result"

_PROBING_CALL = ToolCall(call_id="call_0001", name=PROBE.name, arguments={"probed": PROBED_CALL})

PROBING: tuple[Message, ...] = (
    UserMessage(text="Probe."),
    AssistantMessage(tool_calls=(_PROBING_CALL,)),
    ToolMessage(call_id="call_0001", name=PROBE.name, text=PROBED_RESULT),
)
"""A conversation with that tool."""


def template_tools(tools: Sequence[ToolDefinition], names: WireNames) -> list[TemplateData]:
    """Tools as the runtime sends them to servers, which give them to the template."""
    return [encode_tool(tool, names.encode(tool.name)) for tool in tools]


def template_message(message: Message, names: WireNames) -> TemplateData:
    """One message.

    Servers hand call arguments to a template as objects, and so does this; a call whose arguments
    were not JSON carries their text under ``malformed_arguments``.
    """
    spoken: TemplateData = {"role": message.role, "content": message.text}
    if isinstance(message, AssistantMessage) and message.tool_calls:
        spoken["tool_calls"] = [_call(one, names) for one in message.tool_calls]
    elif isinstance(message, ToolMessage):
        spoken |= {"name": names.encode(message.name), "tool_call_id": message.call_id}
    return spoken


def _call(call: ToolCall, names: WireNames) -> TemplateData:
    arguments = call.arguments if call.malformed is None else {MALFORMED_KEY: call.malformed}
    function = {"name": names.encode(call.name), "arguments": _plain(arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _plain(value: Any) -> Any:
    """Lists and dicts in the place of other containers, which Jinja can not write as JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


PROTOCOL = "agentkit-training"


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenAnswer:
    """An answer that the policy wrote, with the prompt that it answered.

    Attributes:
        ids: Prompt and answer, in tokens.
        asked: What the template wrote for the prompt.
        is_ended: Whether its last token is an end token.
    """

    ids: tuple[int, ...]
    asked: str
    is_ended: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A prompt.

    Attributes:
        ids: Its tokens.
        text: What the template writes for the conversation.
        is_retokenised: Whether an earlier answer of the policy was tokenised again.
    """

    ids: tuple[int, ...]
    text: str
    is_retokenised: bool = False


class Renderer:
    """Writes conversations with the tokenizer's own chat template.

    Args:
        speaker: Whose tokenizer and end tokens to use; a policy, for one.
    """

    def __init__(self, speaker: Policy) -> None:
        self.speaker = speaker
        self._tokenizer: PreTrainedTokenizerBase = speaker.tokenizer
        self._ends = {token: self.said([token]) for token in speaker.end_ids}

    def text(
        self, messages: Sequence[Message], *, asks: bool, tools: Sequence[ToolDefinition] = ()
    ) -> str:
        """The conversation as text.

        Args:
            messages: The conversation.
            asks: Whether the model is to answer now.
            tools: What the template is to offer.

        Raises:
            PolicyError: The template refuses the conversation.
        """
        names = WireNames(tool.name for tool in tools)
        try:
            written = self._tokenizer.apply_chat_template(
                [template_message(one, names) for one in messages],
                tools=template_tools(tools, names) or None,
                tokenize=False,
                add_generation_prompt=asks,
            )
        except Exception as error:  # a template may raise anything it likes
            raise PolicyError(
                f"the chat template of the tokenizer refuses the conversation: {error}; roles were "
                + ", ".join(one.role for one in messages)
            ) from error
        return str(written)

    def tokens(self, text: str) -> tuple[int, ...]:
        """Text as tokens; special tokens are read as such, and none are added."""
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def said(self, ids: Sequence[int]) -> str:
        """Tokens as text, every character of it."""
        return str(
            self._tokenizer.decode(
                list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )

    def prompt(
        self,
        messages: Sequence[Message],
        known: Mapping[str, WrittenAnswer],
        *,
        tools: Sequence[ToolDefinition] = (),
    ) -> Rendered:
        """The prompt that asks for the next answer.

        Args:
            messages: The conversation.
            known: Answers of this process, by the id in their provider item.
            tools: What the template is to offer.
        """
        whole = self.text(messages, asks=True, tools=tools)
        last = next((n for n in range(len(messages) - 1, -1, -1) if _id(messages[n])), None)
        if last is None:
            return Rendered(ids=self.tokens(whole), text=whole)
        answer = known.get(_id(messages[last]))
        before = self.text(messages[: last + 1], asks=False, tools=tools)
        rest = None if answer is None else self._after(answer, messages[last], before, whole)
        if answer is None or rest is None:
            return Rendered(ids=self.tokens(whole), text=whole, is_retokenised=True)
        return Rendered(ids=answer.ids + self.tokens(rest), text=whole)

    def require_tools(self) -> None:
        """Make sure that the template writes tools, calls and results.

        Raises:
            PolicyError: It does not.
        """
        advice = (
            "Use tools_in='prompt', or load the policy with chat_template='chatml-tools' or with a "
            "Jinja template that writes tools, tool_calls and the role tool"
        )
        name = self.speaker.name
        try:
            written = self.text(PROBING, asks=True, tools=(PROBE,))
        except PolicyError as error:
            raise PolicyError(f"{name} can not be offered tools: {error}. {advice}") from error
        offered = self.text(PROBING[:1], asks=True, tools=(PROBE,))
        for what, sought, text in (
            ("tools", PROBE.name, offered),
            ("calls", PROBED_CALL, written),
            ("results", PROBED_RESULT, written),
        ):
            if sought not in text:
                raise PolicyError(
                    f"the chat template of {name} has no place for {what}: what it was given left "
                    f"no trace in the prompt. {advice}"
                )

    def _after(
        self, answer: WrittenAnswer, message: Message, before: str, whole: str
    ) -> str | None:
        """What the template writes after an answer; None when it rewrites what came before it.

        Args:
            answer: The answer as it was written.
            message: The same as the conversation has it.
            before: What the template writes up to the answer and its end.
            whole: What it writes now.
        """
        if not (before.startswith(answer.asked) and whole.startswith(before)):
            return None  # another prompt: other tools now, or a template that looks back
        start = len(answer.asked)
        spoken = message.text.strip()
        place = before.find(spoken, start)
        if place < 0:
            return None  # the template left a part out, such as the thoughts of earlier turns
        end = self._end(answer, before, place + len(spoken))
        return None if end is None else whole[end:]

    def _end(self, answer: WrittenAnswer, before: str, start: int) -> int | None:
        """Where the template goes on after what was written; None when it ends no turns.

        An answer that was cut has no end token, so that the template's own is yet to come.
        """
        places = {
            token: place
            for token, end in self._ends.items()
            if (place := before.rfind(end, start)) >= 0
        }
        if not places:
            return None
        token = min(places, key=lambda one: places[one])
        if not answer.is_ended:
            return places[token]
        token = answer.ids[-1] if answer.ids[-1] in places else token
        return places[token] + len(self._ends[token])


def _id(message: Message) -> str:
    """The id of an answer of a policy; empty for any other message."""
    if isinstance(message, AssistantMessage):
        for item in message.provider_items:
            if item.protocol == PROTOCOL:
                return str(item.data.get("answer", ""))
    return ""
