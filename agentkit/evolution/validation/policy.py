"""Who must agree to a change beyond the checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from agentkit.evolution.validation.novelty import says_new
from agentkit.evolution.validation.origins import TRUSTED, fresh_texts
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.rule_support import newly_demanded, unsupported_rules
from agentkit.evolution.validation.semantic.comparing import compares
from agentkit.evolution.validation.texts import sentences_of
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules.demands import ToolsByName, demanded

Needed = Literal["judge", "person"]

_NO_TOOLS = Library()

_BOTH: tuple[Needed, ...] = ("judge", "person")

_MONEY = re.compile(
    r"""
    \b(?: pay | pays | payout | payouts | payment[ _]?(?:order|method) | refund\w* | reimburs\w*
        | transfer\w* | wire | withdraw\w* | deposit\w* | remit\w* | charge | charges
        | purchas\w* | buy | buys | checkout | sell | sells | trade | trades | donat\w*
        | invest\w* | bill | bills | invoice[sd]? | subscribe\w*
        | zahl(?:t|ung|en)? | bezahl\w* | [uü]berweis\w* | erstatt\w* | kauf(?:t|en)
        | pa(?:ye|ie)\w* | rembours\w* | vire(?:ment)?s? | ach[eè]t\w*
        | pag(?:a|ar|o|os) | reembols\w* | transfiere\w* | compra(?:r)? )\b
    | 支付 | 付款 | 转账 | 轉帳 | 退款 | 汇款 | 购买 | 扣款 | 充值 | 下单
    | 支払 | 返金 | 送金 | 振込 | 購入 | 決済
    """,
    re.VERBOSE | re.IGNORECASE,
)


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
    return _MONEY.search(f"{name}\n{words}") is not None
