"""From the answer of a model to suggestions: tolerant, total and without running anything.

Whatever the text is, what comes out are values. Each block is judged alone, so that a good one is
not lost beside a bad one (ToolDNA, algorithm 2, lines 7 to 20).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentkit.evolution.proposals.amending import amended
from agentkit.evolution.proposals.block_fields import UnreadableBlockError, read_fields
from agentkit.evolution.proposals.blocks import cut, unreadable
from agentkit.evolution.proposals.proposal import Proposal, Stream, UnreadableProposal
from agentkit.evolution.proposals.proposer import Suggestion
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition

NOTHING = "NOTHING"
"""What a model answers that finds nothing to change."""

_LONGEST_KEPT = 4_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a model was asked, as far as its answer is judged by it.

    Attributes:
        library: The tools as they are.
        stream: Where the answer comes from.
        author: Who answers.
        tools: The tools that the answer may be about; empty for every tool of the library.
        reason: Why it was asked, in words.
        evidence: Ids of the episodes that it was shown.
    """

    library: Library
    stream: Stream
    author: Author
    tools: frozenset[str] = frozenset()
    reason: str = ""
    evidence: tuple[str, ...] = ()


def read_answer(answer: str, question: Question) -> tuple[Suggestion, ...]:
    """What an answer suggests, block by block.

    Args:
        answer: The text; anything at all.
        question: What was asked.

    Returns:
        A proposal for each block that can be held against a tool, whether it is any good or not,
        and an ``UnreadableProposal`` for everything else. Nothing when the answer is ``NOTHING``.

    Example:
        >>> from agentkit import ToolDefinition
        >>> loan = ToolDefinition(name="loan")
        >>> question = Question(
        ...     library=Library([loan]), stream="person", author=Author(kind="person", name="Ann"))
        >>> answer = '<description>{"tool": "loan", "summary": "A loan."}</description>'
        >>> [found] = read_answer(answer, question)
        >>> found.candidate.description.summary
        'A loan.'
    """
    if answer.strip().strip(".`*") == NOTHING:
        return ()
    parts = cut(answer)
    seen: set[str] = set()
    suggestions = [_read_block(block, question, seen) for block in parts.blocks]
    refused = [_unreadable(question, "", text, (check,)) for check, text in parts.failed]
    return (*suggestions, *refused)


def _read_block(block: str, question: Question, seen: set[str]) -> Suggestion:
    tool = ""
    try:
        said = read_fields(block)
        tool = said.tool
        base = _base(said.tool, block, question)
        candidate = amended(base, said)
        key = f"{candidate.name} {candidate.digest}"
        if key in seen:
            why = f"the same change of {said.tool!r} is suggested twice"
            raise UnreadableBlockError(unreadable("duplicate_block", why, block))  # noqa: TRY301 - one way out
        seen.add(key)
    except UnreadableBlockError as error:
        return _unreadable(question, error.tool or tool, block, error.failed)
    return Proposal.of(
        base,
        candidate,
        stream=question.stream,
        author=question.author,
        reason=question.reason,
        evidence=question.evidence,
    )


def _base(name: str, block: str, question: Question) -> ToolDefinition:
    """The tool that a block is about (ToolDNA, appendix E: identity verification)."""
    tool = question.library.get(name)
    if tool is None:
        why = f"there is no tool {name[:60]!r}"
        raise UnreadableBlockError(unreadable("unknown_tool", why, block), tool=name)
    if question.tools and name not in question.tools:
        asked = ", ".join(sorted(question.tools))
        why = f"the block is about {name!r}, asked was for {asked[:200]}"
        raise UnreadableBlockError(unreadable("other_tool", why, block), tool=name)
    return tool.definition


def _unreadable(
    question: Question, tool: str, text: str, failed: tuple[FailedCheck, ...]
) -> UnreadableProposal:
    asked: Iterator[str] = iter(question.tools if len(question.tools) == 1 else ())
    return UnreadableProposal(
        author=question.author,
        stream=question.stream,
        tool_name=(tool or next(asked, ""))[:200],
        text=text[:_LONGEST_KEPT],
        failed=failed,
    )
