"""Writing a conversation as tokens, so that what the model once wrote stays the tokens it wrote.

Text that is tokenised again need not give the same tokens, and a policy must be trained on those
that it chose. So an answer of this process is put in as it was written, and only what came after it
is tokenised: the ends of turns, tool results, the next question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit.messages import AssistantMessage, Message
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROTOCOL = "agentkit-training"


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenAnswer:
    """An answer that the policy wrote, with the prompt that it answered.

    Attributes:
        ids: Prompt and answer, in tokens.
        is_ended: Whether its last token is an end token.
    """

    ids: tuple[int, ...]
    is_ended: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A prompt.

    Attributes:
        ids: Its tokens.
        is_continued: Whether it begins with an earlier prompt and the answer to it, unchanged.
    """

    ids: tuple[int, ...]
    is_continued: bool = False


class Renderer:
    """Writes conversations with the tokenizer's own chat template.

    Args:
        policy: Whose tokenizer and end tokens to use.
    """

    def __init__(self, policy: Policy) -> None:
        self._tokenizer: PreTrainedTokenizerBase = policy.tokenizer
        self._ends = policy.end_ids

    def text(self, messages: Sequence[Message], *, asks: bool) -> str:
        """The conversation as text.

        Args:
            messages: Of text alone; ``PromptedModel`` makes them so.
            asks: Whether the model is to answer now.

        Raises:
            PolicyError: The template refuses the conversation.
        """
        spoken = [{"role": one.role, "content": one.text} for one in messages]
        try:
            written = self._tokenizer.apply_chat_template(
                spoken, tokenize=False, add_generation_prompt=asks
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

    def prompt(self, messages: Sequence[Message], known: dict[str, WrittenAnswer]) -> Rendered:
        """The prompt that asks for the next answer.

        Args:
            messages: The conversation.
            known: Answers of this process, by the id in their provider item.
        """
        whole = self.text(messages, asks=True)
        for number in range(len(messages) - 1, -1, -1):
            answer = _answer(messages[number], known)
            if answer is None:
                continue
            rest = self._after(messages[: number + 1], whole, answer)
            if rest is None:
                break
            return Rendered(ids=answer.ids + self.tokens(rest), is_continued=True)
        return Rendered(ids=self.tokens(whole))

    def _after(self, said: Sequence[Message], whole: str, answer: WrittenAnswer) -> str | None:
        """What the template writes after an answer; None when it rewrites what came before it."""
        before = self.text(said, asks=False)
        if not whole.startswith(before):
            return None
        ends = [self._tokenizer.decode([token]) for token in self._ends]
        found = max((before.rfind(end), end) for end in ends)
        place, end = found
        if place < 0:
            return None
        if answer.is_ended:
            place += len(end)
        return whole[place:]


def _answer(message: Message, known: dict[str, WrittenAnswer]) -> WrittenAnswer | None:
    if not isinstance(message, AssistantMessage):
        return None
    for item in message.provider_items:
        if item.protocol == PROTOCOL:
            return known.get(str(item.data.get("answer", "")))
    return None
