"""Carrying what a tool has learned over to the code that it runs by now."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentkit.composites.rule_validity import rule_problems
from agentkit.library.code_binding import contract_of
from agentkit.library.library import Library
from agentkit.library.rebase import rebase
from agentkit.tools.definition import Signature, ToolDefinition
from agentkit.tools.fit import fits
from agentkit.tools.rules.records import Between, Form, OneOf, Rule
from agentkit.tools.rules.sentences import rule_sentence
from agentkit.tools.schema import places


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """What becomes of one tool whose code the library does not describe as it is.

    Attributes:
        definition: What is written now: the contract of the code, with what was learned as far as
            it fits.
        difference: What code and library do not agree on, in words.
        waiting: The definition with what code and library changed differently, or what was learned
            about a parameter that seems to have another name now; None when nothing is left.
        lost: What fits neither, in words.
    """

    definition: ToolDefinition
    difference: str
    waiting: ToolDefinition | None = None
    lost: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The tool's name in the library."""
        return self.definition.name


def carry_over(
    code: ToolDefinition, held: ToolDefinition, base: ToolDefinition, library: Library
) -> Revision:
    """The library's definition moved onto a contract that changed in code (a three-way merge).

    Args:
        code: The definition in code.
        held: The library's.
        base: What ``held`` was before anything was learned: the code as it was last seen.
        library: Where the tool lives.

    Example:
        >>> from agentkit.tools.definition import Specification
        >>> from agentkit.tools.rules import OneOf
        >>> def loan(**properties):
        ...     return ToolDefinition.from_schema("loan", "", {"properties": properties})
        >>> base = loan(months={"type": "integer"})
        >>> rule = OneOf(parameter="months", values=(36, 48))
        >>> held = replace(base, specification=Specification(rules=(rule,)))
        >>> code = loan(months={"type": "integer"}, sum={"type": "number"})
        >>> carry_over(code, held, base, Library([held])).definition.specification.rules == (rule,)
        True
    """
    contract = contract_of(code.signature, held.signature)
    wanted = replace(code, name=held.name, signature=contract)
    merged = rebase(base, held, wanted).definition
    definition, unfit = _fitting(merged, library)
    mine = rebase(base, wanted, replace(held, signature=base.signature)).definition
    moved = _renamed_parameter(base.signature, contract)
    candidate = replace(_moved(mine, moved), signature=contract, origin=code.origin)
    candidate, still_unfit = _fitting(candidate, library)
    kept = {rule_sentence(rule) for rule in candidate.specification.rules}
    moved_words = {rule_sentence(rule) for rule in _moved_rules(unfit, moved)} & kept
    return Revision(
        definition=definition,
        difference=_difference(held.signature, contract),
        waiting=None if candidate.digest == definition.digest else candidate,
        lost=tuple(sorted({rule_sentence(one) for one in still_unfit} - moved_words)),
    )


def renamed(
    code: ToolDefinition, old: ToolDefinition, base: ToolDefinition, library: Library
) -> Revision:
    """What a tool had learned under its old name, to be taken over by the new one.

    Args:
        code: The definition in code, under the new name.
        old: The library's, under the old name.
        base: What ``old`` was before anything was learned.
        library: Where both live.
    """
    name = code.name
    moved = carry_over(code, replace(old, name=name), replace(base, name=name), library)
    learned = moved.waiting or moved.definition
    return Revision(
        definition=code,
        difference=f"it seems to be {old.name} under another name",
        waiting=None if learned.digest == code.digest else learned,
        lost=moved.lost,
    )


def _fitting(
    definition: ToolDefinition, library: Library
) -> tuple[ToolDefinition, tuple[Rule, ...]]:
    """The definition without what its own contract refuses, and the rules among that."""
    schema = definition.signature.parameters
    examples = (one for one in definition.examples if fits(one.arguments, schema) is not False)
    texts = {
        name: text
        for name, text in definition.description.parameters.items()
        if places(schema, name)
    }
    fitting = replace(
        definition,
        description=replace(definition.description, parameters=texts),
        examples=tuple(examples),
    )
    unfit = tuple(
        rule for rule in definition.specification.rules if rule_problems(rule, fitting, library)
    )
    rules = tuple(rule for rule in definition.specification.rules if rule not in unfit)
    specification = replace(fitting.specification, rules=rules)
    return replace(fitting, specification=specification), unfit


def _renamed_parameter(before: Signature, after: Signature) -> tuple[str, str] | None:
    """The old and the new name of a parameter, where one alone went and one like it came."""
    gone = [name for name in before.properties if name not in after.properties]
    come = [name for name in after.properties if name not in before.properties]
    if len(gone) != 1 or len(come) != 1:
        return None
    same = before.properties[gone[0]] == after.properties[come[0]]
    return (gone[0], come[0]) if same else None


def _moved(definition: ToolDefinition, moved: tuple[str, str] | None) -> ToolDefinition:
    """The definition with the texts and rules of a parameter under its new name."""
    if moved is None:
        return definition
    before, after = moved
    texts = dict(definition.description.parameters)
    if before in texts:
        texts[after] = texts.pop(before)
    rules = _moved_rules(definition.specification.rules, moved)
    return replace(
        definition,
        description=replace(definition.description, parameters=texts),
        specification=replace(definition.specification, rules=rules),
    )


def _moved_rules(rules: tuple[Rule, ...], moved: tuple[str, str] | None) -> tuple[Rule, ...]:
    if moved is None:
        return rules
    before, after = moved
    return tuple(
        replace(rule, parameter=after)
        if isinstance(rule, OneOf | Between | Form) and rule.parameter == before
        else rule
        for rule in rules
    )


def _difference(held: Signature, code: Signature) -> str:
    """What changed in a contract, in words."""
    gone = [name for name in held.properties if name not in code.properties]
    come = [name for name in code.properties if name not in held.properties]
    changed = [
        name
        for name, schema in code.properties.items()
        if name in held.properties and held.properties[name] != schema
    ]
    parts = [
        f"{what} {', '.join(names)}"
        for what, names in (("adds", come), ("drops", gone), ("changes", changed))
        if names
    ]
    if set(held.required) ^ set(code.required):
        parts.append("requires other parameters")
    if held.result != code.result:
        parts.append("returns something else")
    if held.effects != code.effects:
        parts.append("declares other effects")
    return f"the code {' and '.join(parts) or 'has another schema'}"
