"""Who must agree to a change beyond the checks, and which failed checks a person may overrule."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agentkit.evolution.proposers.observed import described_rules, rule_key
from agentkit.evolution.validation.novelty import says_new
from agentkit.evolution.validation.origins import TRUSTED, fresh_texts
from agentkit.evolution.validation.phrases import pattern
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.texts import rules_of, sentences_of
from agentkit.evolution.validation.tool_names import compares
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import CallBefore, Rule
from agentkit.tools.rules.demands import ToolsByName, demanded

Needed = Literal["judge", "person"]

_NO_TOOLS = Library()

_BOTH: tuple[Needed, ...] = ("judge", "person")


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationPolicy:
    """Who must agree to a change of which tool.

    Deterministic checks can not see a well-phrased lie. Where a wrong text costs more than a wrong
    answer, another model reads it, and then a person.

    The effects of a tool are also those of every tool that its rules demand first, that these
    demand, and that composites among them call. A demanded tool that the library does not know
    counts as the worst: destructive, open-world and about money.

    Attributes:
        always: Needed for every change.
        destructive: Needed when the tool may delete, overwrite or spend.
        open_world: Needed when the tool talks to systems beyond the application, also when it only
            reads: what it is asked leaves the house.
        money: Needed when name or words of the tool are about moving money and the tool is not
            known to only read. A calculator that declares ``writes=False`` moves nothing.
        comparing: Needed when a text prefers the tool to another one: it takes calls from that one.
        untrusted: Needed when the change brings words of an untrusted origin (``fresh_texts``):
            words of users, tools and servers, and allowed values that no accepted call has used. A
            person who agrees answers for the judge. A judge is a model that such words may talk
            to; ``("person",)`` asks a person alone.
        new_words: Needed when a text says something that the tool did not say
            (``novelty.says_new``), whatever the tool does, unless a person or the tool's own code
            wrote it. A person who agrees answers for the judge too, unless something else asks
            for both.
        new_rules: Needed when a rule comes from a model or a program, and neither recorded calls
            nor the tool's own texts bear it out (``rule_support.unsupported_rules``): it refuses
            calls. An order of calls is no such rule: one that demands a tool which is not declared
            to only read needs ``destructive`` instead, since nobody knows what that tool does.
            Empty for neither.
        undeclared: Needed when the tool declares nothing about writing. It is treated as one that
            may write, which alone is no reason to wait: without effects most imported tools would
            wait for a person forever, and people would learn to agree unread.

    Example:
        >>> from agentkit.testing import sample_library
        >>> cancel = sample_library()["calendar_cancel_event"].definition
        >>> ValidationPolicy().needs_for(cancel)
        ('judge', 'person')
        >>> ValidationPolicy(destructive=("person",)).needs_for(cancel)
        ('person',)
    """

    always: tuple[Needed, ...] = ()
    destructive: tuple[Needed, ...] = _BOTH
    open_world: tuple[Needed, ...] = _BOTH
    money: tuple[Needed, ...] = _BOTH
    comparing: tuple[Needed, ...] = _BOTH
    untrusted: tuple[Needed, ...] = ("judge",)
    new_words: tuple[Needed, ...] = ("judge",)
    new_rules: tuple[Needed, ...] = ("judge",)
    undeclared: tuple[Needed, ...] = ()

    def needs(self, change: ProposedChange) -> tuple[Needed, ...]:
        """Who must agree to ``change``: what the base or the candidate needs."""
        library = change.library
        wanted = {
            *self.needs_for(change.base, library),
            *self.needs_for(change.candidate, library),
        }
        if self.comparing and compares(change):
            wanted.update(self.comparing)
        if self.untrusted and any(text.waits for text in fresh_texts(change)):
            wanted.update(self.untrusted)
        if change.written_by not in TRUSTED and says_new(change):
            wanted.update(self.new_words)
        if self.new_rules and unsupported_rules(change):
            wanted.update(self.new_rules)
        if self.new_rules and not all(map(_only_reads, newly_demanded(change))):
            wanted.update(self.destructive)
        return tuple(needed for needed in _BOTH if needed in wanted)

    def needs_for(
        self, definition: ToolDefinition, tools: ToolsByName = _NO_TOOLS
    ) -> tuple[Needed, ...]:
        """Who must agree to a change of this tool.

        Args:
            definition: The tool.
            tools: The tools that its rules may demand and its program may call; one that is not
                among them counts as the worst.
        """
        wanted = self._for_effects(definition)
        for other in demanded(definition, tools).values():
            if other is None:
                wanted.update((*self.destructive, *self.open_world, *self.money))
            else:
                wanted |= self._for_effects(other)
        return tuple(needed for needed in _BOTH if needed in wanted)

    def _for_effects(self, definition: ToolDefinition) -> set[Needed]:
        effects = definition.signature.effects
        wanted = set(self.always)
        if effects.destructive:
            wanted.update(self.destructive)
        if effects.writes is None and not effects.destructive:
            wanted.update(self.undeclared)
        if effects.open_world:
            wanted.update(self.open_world)
        if not effects.is_read_only and is_about_money(definition):
            wanted.update(self.money)
        return wanted


def _only_reads(definition: ToolDefinition | None) -> bool:
    return definition is not None and definition.signature.effects.is_read_only


def is_about_money(definition: ToolDefinition) -> bool:
    """Whether the words of a tool speak of moving money.

    Example:
        >>> is_about_money(ToolDefinition(name="refund_order")), is_about_money(
        ...     ToolDefinition(name="weather_now"))
        (True, False)
    """
    name = re.sub(r"[_\W]+|(?<=[a-z])(?=[A-Z])", " ", definition.name)
    words = sentences_of(definition, ("summary", "tag", "usage_rule"))
    return pattern("money").search(f"{name}\n{words}") is not None


OVERRULABLE: frozenset[str] = frozenset(
    {
        # a sentence was read, and held against what the tool says of itself
        "purpose_changed",
        "effect_contradicted",
        "warning_removed",
        "near_copy",
        # a sentence was read, and held against the schema, which stays as it is whatever it says
        "value_contradicted",
        "presence_contradicted",
        "type_contradicted",
        "unit_contradicted",
        "bounds_contradicted",
        # a phrase was found that often says too much
        "unsupported_rule",
        "invented_parameter",
        "false_claim",
        "self_promotion",
        # a word was taken for the name of a tool
        "other_tool",
    }
)
"""Codes of checks that judge wording, and may be wrong about an honest sentence.

No other code may be overruled. What is structural is a fact about the contract. Hidden and
confusable characters, markup, encoded text, secrets, private data, addresses, lengths and copied
text can always be left out or said otherwise at no loss. A directive is what an attack is made of,
and no honest description needs one. An example that does not fit the schema would teach wrong
calls.
"""

OVERRULABLE_OF_ARRIVALS: frozenset[str] = frozenset(
    {
        "invisible_characters",
        "mixed_scripts",
        "confusable_characters",
        "secret",
        "secret_request",
        "chat_markers",
        "encoded_text",
        "directive",
    }
)
"""Codes that a person may overrule of a tool that is imported whole: those of ``IMPORT_CHECKS``.

Nobody here can ask its author for other words. Whoever overrules them could as well register the
tool unexamined; this way the history says what spoke against it, and who read it.
"""


def is_overruled(failed: FailedCheck, overruled: Iterable[FailedCheck]) -> bool:
    """Whether a failed check is one that a person has overruled: the same code on the same words.

    A person overrules what was shown, and no more: the same code on other words stands.

    Args:
        failed: What a check says now.
        overruled: What a person overruled.

    Example:
        >>> said = FailedCheck(
        ...     code="false_claim", layer="semantic", message="", advice="", excerpt="is free"
        ... )
        >>> is_overruled(said, [said])
        True
        >>> from dataclasses import replace
        >>> is_overruled(replace(said, excerpt="is safe"), [said])
        False
    """
    return any((failed.code, failed.excerpt) == (one.code, one.excerpt) for one in overruled)


def new_rules(change: ProposedChange) -> tuple[Rule, ...]:
    """The rules of the candidate that the base does not have."""
    had = rules_of(change.base)
    return tuple(rule for rule in rules_of(change.candidate) if rule not in had)


def unsupported_rules(change: ProposedChange) -> tuple[Rule, ...]:
    """New rules that neither recorded calls nor the tool's own texts bear out.

    A rule refuses calls, so a wrong one can lock a tool. What persons and code say is taken at
    their word; what the evidence proposer reads off refusals and accepted calls was held against
    both. A rule of anybody else counts when the text of its parameter states just that.
    For mere orders of calls see ``newly_demanded``; one that says where a value comes from refuses
    every other value.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> from agentkit.tools.rules import Between
        >>> locked = rewrite("weather_forecast", rules=(Between(parameter="days", maximum=0),))
        >>> [rule.kind for rule in unsupported_rules(locked)]
        ['between']
    """
    if change.written_by in TRUSTED or change.from_evidence:
        return ()
    return tuple(
        rule
        for rule in new_rules(change)
        if not _is_mere_order(rule) and not _is_stated(rule, change.base)
    )


def newly_demanded(change: ProposedChange) -> tuple[ToolDefinition | None, ...]:
    """The tools that new orders of calls make models call; None for one that is not there.

    Orders that persons and code state, or that recorded calls show, are left out.
    """
    orders = (isinstance(rule, CallBefore) for rule in new_rules(change))
    if change.written_by in TRUSTED or change.from_evidence or not any(orders):
        return ()
    before = demanded(change.base, change.library)
    after = demanded(change.candidate, change.library)
    return tuple(tool for name, tool in after.items() if name not in before)


def _is_mere_order(rule: Rule) -> bool:
    return isinstance(rule, CallBefore) and not rule.parameter


def _is_stated(rule: Rule, base: ToolDefinition) -> bool:
    parameter = getattr(rule, "parameter", "")
    if not isinstance(parameter, str):
        return False
    stated = described_rules(base, parameter.partition(".")[0].removesuffix("[]"))
    try:
        return any(rule_key(one) == rule_key(rule) for one in stated)
    except ValueError:  # a bound that is no number; the checks say so
        return False
