"""What validation looks at, what it finds, and how checks say it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from agentkit.evolution.validation.texts import Edit, Text, edits_between, folded, texts_of
from agentkit.library.library import Library
from agentkit.records import Record
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.patterns import written_out
from agentkit.tools.rules import Rule

Layer = Literal["lexical", "structural", "semantic"]

OriginKind = Literal["person", "code", "model", "user", "tool_result", "server", "unknown"]
"""Whose words a text is. ``code`` is the project's own code, and this package's fixed phrases."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextOrigin:
    """Where one text of a candidate came from.

    Attributes:
        text: The text as it stands in the candidate, whole.
        kind: Whose words these are.
        where: Who said so and when, in words, such as ``loan refused a call``.
        is_used: Whether a call gave it as a value, unprompted by any tool, and was accepted.
    """

    text: str
    kind: OriginKind
    where: str = ""
    is_used: bool = False

    def to_json(self) -> dict[str, str | bool]:
        """The origin as a JSON object; empty parts are left out."""
        record: dict[str, str | bool] = {"text": self.text, "kind": self.kind}
        if self.where:
            record["where"] = self.where
        return record | {"used": True} if self.is_used else record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> TextOrigin:
        """The inverse of ``to_json``; a kind that is not known counts as ``unknown``."""
        kinds: Mapping[str, OriginKind] = {kind: kind for kind in get_args(OriginKind)}
        return cls(
            text=record["text"],
            kind=kinds.get(str(record.get("kind")), "unknown"),
            where=record.get("where", ""),
            is_used=record.get("used") is True,
        )


@dataclass(frozen=True, kw_only=True)
class ProposedChange:
    """What a check sees.

    Attributes:
        base: The definition as it is.
        candidate: The definition as it would be.
        library: The library that holds the base.
        sources: Texts that the candidate must not copy from: what users said and tools returned in
            the episodes behind it.
        origins: Where single texts of the candidate came from.
        written_by: Whose words all other new texts are.
        from_evidence: Whether the evidence proposer read its rules off recorded calls.
        learned: Rules of the base that evidence taught with nobody asked.
        is_new: Whether the tool is new; the base then is the candidate without any words.
    """

    base: ToolDefinition
    candidate: ToolDefinition
    library: Library
    sources: tuple[str, ...] = ()
    origins: tuple[TextOrigin, ...] = ()
    written_by: OriginKind = "model"
    from_evidence: bool = False
    learned: tuple[Rule, ...] = ()
    is_new: bool = False

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """Every text of the base."""
        return texts_of(self.base)

    @cached_property
    def candidate_texts(self) -> tuple[Text, ...]:
        """Every text of the candidate."""
        return texts_of(self.candidate)

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """The texts of the candidate that the base does not have; checks of words read these."""
        return edits_between(self.texts, self.candidate_texts)

    @cached_property
    def known(self) -> str:
        """Everything that the base says, without capitals: what is not new is no reproach."""
        return "\n".join(text.text for text in self.texts).casefold()

    @cached_property
    def known_folded(self) -> str:
        """``known`` without accents and presentation forms, as patterns read texts."""
        return folded(self.known)


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedCheck(Record):
    """One reason against a candidate.

    Attributes:
        code: Which check failed, such as ``invisible_characters``.
        layer: The layer that the check belongs to.
        field: Where: ``summary``, ``parameters.periods``, ``usage_rules[0]``, ``rules[0]``; empty
            for the whole.
        message: What is wrong, with values.
        advice: What to do instead.
        excerpt: The text that shows it, cut to a readable length.
    """

    _OPTIONAL: ClassVar = ("field", "excerpt")

    code: str
    layer: Layer
    message: str
    advice: str
    field: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        where = f" in {self.field}" if self.field else ""
        return f"[{self.code}]{where}: {self.message}"


Check: TypeAlias = Callable[[ProposedChange], Iterable[FailedCheck]]
"""A check yields every reason it finds; none means that it has no objection."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationReport:
    """What all checks together say.

    Attributes:
        failed: Every check that rejects it, in the order of the layers.
        doubts: Those that may be wrong about an honest sentence; a person is asked.
        needs: Who must still agree: ``judge``, ``person``. A candidate that needs somebody waits;
            it does not pass.
    """

    failed: tuple[FailedCheck, ...] = ()
    doubts: tuple[FailedCheck, ...] = ()
    needs: tuple[Literal["judge", "person"], ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether no check failed."""
        return not self.failed


_LONGEST_EXCERPT = 120


def shown(text: str) -> str:
    """A text that can be shown to a person: short, and with nothing hidden in it.

    Example:
        >>> shown("pay" + chr(0x202E) + "m")
        'pay<U+202E>m'
    """
    part = text if len(text) <= _LONGEST_EXCERPT else f"{text[: _LONGEST_EXCERPT - 3]}..."
    part = written_out(part, "<U+{:04X}>".format)
    return part.replace("\n", "<U+000A>").replace("\t", "<U+0009>")


@cache
def _reasons() -> Mapping[str, Mapping[str, str]]:
    text = files(__package__ or "").joinpath("phrases", "reasons.toml").read_text("utf-8")
    return tomllib.loads(text)


def failed(
    reason: str, *, code: str = "", field: str = "", excerpt: str = "", **values: object
) -> FailedCheck:
    """A failed check in the words of ``phrases/reasons.toml``.

    Args:
        reason: Its name there.
        code: The code; by default the reason up to a dot.
        field: Where, as in ``FailedCheck``.
        excerpt: The text that shows it.
        values: What the message names.
    """
    said = _reasons()[reason]
    layer: Mapping[str, Layer] = {layer: layer for layer in get_args(Layer)}
    return FailedCheck(
        code=code or reason.partition(".")[0],
        layer=layer[said["layer"]],
        field=field,
        message=said["message"].format_map(values),
        advice=said["advice"].format_map(values),
        excerpt=shown(excerpt),
    )
