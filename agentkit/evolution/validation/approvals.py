"""Who must agree to a change beyond the checks: for what it does, or whose words it brings."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from agentkit.composites.composite import called_in, program_of
from agentkit.composites.language import arguments_of, child_of, walk
from agentkit.composites.parser import parse_expression
from agentkit.errors import CompositeError
from agentkit.evolution.proposers.observed import allows_more, rule_key
from agentkit.evolution.validation.report import (
    OriginKind,
    ProposedChange,
    TextOrigin,
)
from agentkit.evolution.validation.texts import (
    FIRST_EAST_ASIAN,
    Text,
    folded,
    leaves,
    mapping,
    pattern,
    rules_of,
    same,
    sentences_of,
    sequence,
    stands_in,
)
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition, is_instructions
from agentkit.tools.rules import CallBefore, Rule, Takes, rule_sentence
from agentkit.tools.rules.checking import ToolsByName, demanded
from agentkit.tools.schema import DATA_KEYWORDS, parts_at, schemas_in

Needed = Literal["judge", "person"]

_NO_TOOLS = Library()

_BOTH: tuple[Needed, ...] = ("judge", "person")

TRUSTED: frozenset[OriginKind] = frozenset({"person", "code"})
"""Whose words pass, and whose rules."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationPolicy:
    """Who must agree to a change of which tool.

    Deterministic checks cannot see a well-phrased lie. Where a wrong text costs more than a wrong
    answer, another model reads it, and then a person.

    The effects of a tool are also those of every tool that its rules demand first, that these
    demand, and that composites among them call. A demanded tool that the library does not know
    counts as the worst: destructive, open-world and about money. Instructions have the effects of
    every tool of the library, since they may make an agent call any.

    Attributes:
        always: Needed for every change.
        effects: Needed when the tool may delete, overwrite or spend; when it talks to systems
            beyond the application, also when it only reads: what it is asked leaves the house; and
            when its name or words are about moving money and it is not known to only read. A
            calculator that declares ``writes=False`` moves nothing. That a tool declares nothing
            about writing is alone no reason to wait: most imported tools would wait for a person
            forever, and people would learn to agree unread.
        untrusted: Needed when the change brings words of users, tools or servers (``fresh_texts``),
            or allowed values of theirs that no accepted call has used. A judge is a model that such
            words may talk to; ``("person",)`` asks a person alone.
        model_texts: Needed when a model or a program worded, changed or removed a text that models
            read, of any tool: no list of words tells an honest text from a well-phrased lie. Empty
            where numbers alone decide, as in training on simulated tools; doubts then reject such
            texts.
        new_rules: Needed when a rule comes from a model or a program, and no recorded calls bear it
            out (``unsupported_rules``): it refuses calls. An order of calls that demands a tool
            which is not declared to only read needs ``effects`` too, since nobody knows what that
            tool does. Empty for neither.
        lost_rules: Needed when a rule that somebody wrote or agreed to goes, or lets more pass.
            One that evidence taught with nobody asked goes by evidence of as many, and otherwise
            needs ``new_rules``.
        discovered: Needed when nobody but the tool's own refusals named a discovered parameter.
            Empty leaves names of up to three words and 40 characters to held-out tasks; a longer
            one, and one that a user may have dictated, needs ``untrusted`` all the same.

    Example:
        >>> from agentkit.testing import sample_library
        >>> cancel = sample_library()["calendar_cancel_event"].definition
        >>> ValidationPolicy().needs_for(cancel)
        ('judge', 'person')
        >>> ValidationPolicy(effects=("person",)).needs_for(cancel)
        ('person',)
    """

    always: tuple[Needed, ...] = ()
    effects: tuple[Needed, ...] = _BOTH
    untrusted: tuple[Needed, ...] = ("judge",)
    model_texts: tuple[Needed, ...] = ("judge",)
    new_rules: tuple[Needed, ...] = ("judge",)
    lost_rules: tuple[Needed, ...] = ("person",)
    discovered: tuple[Needed, ...] = ("judge",)

    def needs(self, change: ProposedChange) -> tuple[Needed, ...]:
        """Who must agree to ``change``: what the base or the candidate needs."""
        library = change.library
        wanted = {
            *self.needs_for(change.base, library),
            *self.needs_for(change.candidate, library),
            *(self.untrusted if change.written_by == "user" else ()),
        }
        for tool in library if is_instructions(change.base.name) else ():
            wanted |= self._for_effects(tool.definition)
        for text in fresh_texts(change):
            if text.waits:
                is_worded = text.origin.kind in {"model", "unknown"}
                is_own_name = text.is_name and text.origin.kind == "server"
                if is_own_name and not _is_sentence(text.origin.text):
                    wanted.update(self.discovered)
                else:
                    wanted.update(self.model_texts if is_worded else self.untrusted)
        if self.new_rules and unsupported_rules(change):
            wanted.update(self.new_rules)
        if self.new_rules and not all(map(_only_reads, newly_demanded(change))):
            wanted.update(self.effects)
        for rule in lost_rules(change):
            if rule not in change.learned:
                wanted.update(self.lost_rules)
            elif not change.from_evidence:
                wanted.update(self.new_rules)
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
            wanted |= {*self.effects} if other is None else self._for_effects(other)
        return tuple(needed for needed in _BOTH if needed in wanted)

    def _for_effects(self, definition: ToolDefinition) -> set[Needed]:
        effects = definition.signature.effects
        moves_money = not effects.is_read_only and is_about_money(definition)
        acts = effects.destructive or effects.open_world or moves_money
        return {*self.always, *(self.effects if acts else ())}


def _only_reads(definition: ToolDefinition | None) -> bool:
    return definition is not None and definition.signature.effects.is_read_only


def is_about_money(definition: ToolDefinition) -> bool:
    """Whether the words of a tool speak of moving money.

    Example:
        >>> is_about_money(ToolDefinition(name="refund_order")), is_about_money(
        ...     ToolDefinition(name="weather_now"))
        (True, False)
    """
    name = _spaced(definition.name)
    words = sentences_of(definition, ("summary", "tag", "usage_rule"))
    return pattern("money").search(f"{name}\n{words}") is not None


def _spaced(name: str) -> str:
    """The words of a name: ``createdAt`` and ``created_at`` are two."""
    return re.sub(r"[_\W]+|(?<=[a-z])(?=[A-Z])", " ", name)


DOUBTS: frozenset[str] = frozenset(
    (
        # a sentence was read, and held against the schema, which stays as it is whatever it says
        *("value_contradicted", "presence_contradicted", "type_contradicted"),
        "bounds_contradicted",
        # a word was taken for the name of a tool, or a name of a parameter for that of a secret
        *("other_tool", "secret_request"),
    )
)
"""Codes of checks that judge wording, and may be wrong about an honest text: a person is asked.

Any other code rejects. What is structural is a fact about the contract. Hidden and confusable
characters, markup, encoded text, secrets, private data, addresses, lengths and copied text can
always be left out or said otherwise at no loss. A directive is what an attack is made of, and no
honest description needs one. An example that does not fit the schema would teach wrong calls.
"""


def new_rules(change: ProposedChange) -> tuple[Rule, ...]:
    """The rules of the candidate that the base does not have."""
    return tuple(rule for _, rule in _ruled(change))


def unsupported_rules(change: ProposedChange) -> tuple[Rule, ...]:
    """New rules that no recorded calls bear out.

    A rule refuses calls, so a wrong one can lock a tool. What persons and code say is taken at
    their word; what the evidence proposer reads off refusals and accepted calls was held against
    both. A rule of anybody else counts as unsupported, whatever the texts of the tool say: a text
    that names a limit may as well deny it. Of orders of calls see ``newly_demanded`` too.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> from agentkit.tools.rules import Between
        >>> locked = rewrite("weather_forecast", rules=(Between(parameter="days", maximum=0),))
        >>> [rule.kind for rule in unsupported_rules(locked)]
        ['between']
    """
    if change.written_by in TRUSTED or change.from_evidence:
        return ()
    return new_rules(change)


def lost_rules(change: ProposedChange) -> tuple[Rule, ...]:
    """Rules of the base that the candidate drops or loosens, unless a person or code does.

    One in whose place stands the same, or a narrower list or range, is kept.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.testing.rewrites import rewrite
        >>> from agentkit.tools.rules import Between
        >>> week, day = (Between(parameter="days", maximum=days) for days in (7, 1))
        >>> change = rewrite("weather_forecast", rules=(week,))
        >>> for before, after in ((week, day), (day, week)):
        ...     base, to = (
        ...         replace(change.base, specification=replace(
        ...             change.base.specification, rules=(rule,))) for rule in (before, after))
        ...     print(lost_rules(replace(change, base=base, candidate=to)) == (before,))
        False
        True
    """
    if change.written_by in TRUSTED:
        return ()
    kept = rules_of(change.candidate)
    return tuple(
        rule for rule in rules_of(change.base) if not any(_keeps(one, rule) for one in kept)
    )


def _keeps(rule: Any, other: Rule) -> bool:
    """Whether a rule refuses all that another one does, as far as that can be told."""
    if same(rule, other):
        return True
    is_alike = isinstance(rule, type(other))
    return is_alike and (rule_key(rule) == rule_key(other) or allows_more(other, rule))


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


# --- Whose words the texts of a candidate are ----------------------------------------------------
# A rule shows models whatever it was learned from: allowed values, the words and the example of a
# form. Whoever words the errors of a tool could so word what models read. Each proposal therefore
# says of its texts where they came from, and what no trusted origin vouches for waits.
#
# In rules, numbers and texts without letters are data, and need no origin unless
# a user may have dictated the rule that holds them. Nor do texts that the base holds already, whole
# and about the same subject. A text that goes missing waits as a new one does: it may have warned.

_NAMES = frozenset({"kind", "parameter", "others", "tool", "format", "measure", "types"})
"""Fields of rules that hold names of parameters and tools, or words of a fixed list. The name of a
discovered parameter is none of them: whoever words refusals made it known."""

_MOST_WORDS = 3
_LONGEST = 40
"""Words and characters of an allowed value. A longer one is a sentence, whoever used it."""

_WORD = re.compile(r"[^\W_]+")
_PATH = re.compile(r"[\w.\[\]-]{1,64}")
_SPELLS = re.compile(r"(?:\b(?:6[5-9]|[789]\d|1[01]\d|12[0-2])\b\W*){4,}")
"""Four codes of letters in a row."""


_CHOSEN = (*sorted(DATA_KEYWORDS), "pattern", "required")
"""Keywords of a schema by which its author chooses what callers give, or what they need not."""


_NAMES_OF_PARTS = "names"
"""Where a program names parts: of results, which it reads, and of calls. Any contract vouches for
these; for texts that it hands on, only that of code at hand, since files say what they like."""


class FreshText(NamedTuple):
    """A text that a candidate brings, or takes away.

    Attributes:
        field: Where it stands, or stood, as in ``FailedCheck.field``.
        origin: Who wrote it, or took it away.
        waits: Whether somebody must agree to it.
        is_removed: Whether the candidate takes it away.
        is_name: Whether it is the name of a discovered parameter.
    """

    field: str
    origin: TextOrigin
    waits: bool
    is_removed: bool = False
    is_name: bool = False


_Words: TypeAlias = tuple[str, str, bool]
"""New words: where they stand, the text, and whether it is an allowed value."""


def fresh_texts(change: ProposedChange) -> tuple[FreshText, ...]:
    """The new texts of a candidate, with their origins, and those that it takes away.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.testing.rewrites import rewrite
        >>> from agentkit.tools.rules import OneOf
        >>> rule = OneOf(parameter="city", values=("your password", "Oslo"))
        >>> said = (TextOrigin(text="your password", kind="server"),)
        >>> change = replace(rewrite("weather_now", rules=(rule,)), origins=said)
        >>> [(one.origin.text, one.origin.kind, one.waits) for one in fresh_texts(change)]
        [('your password', 'server', True), ('Oslo', 'model', True)]
    """
    if change.written_by in TRUSTED and not change.origins:
        return ()
    known = _known(change)
    names = {(at, one.parameter) for at, one in _ruled(change) if isinstance(one, Takes)}
    of_data = [one for one in _new_data(change) if _is_worded(one[1]) and not known(one[1])]
    new_texts = _not_in(change.texts, change.candidate_texts)
    found = []
    for field, said, is_value in (*_as_words(new_texts, change), *_new_calls(change), *of_data):
        origin = _origin_of(said, change)
        is_name = is_value and (field, said) in names
        waits = _waits(origin, is_value=is_value)
        found.append(FreshText(field, origin, waits, is_name=is_name))
    replaced = {text.field for text in new_texts}  # the new text waits for the old one too
    for text in _not_in(change.candidate_texts, change.texts):
        if text.field not in replaced:
            by = TextOrigin(text=text.text, kind=change.written_by)
            found.append(FreshText(text.field, by, by.kind not in TRUSTED, is_removed=True))
    # a new rule that a user may have dictated, numbers included: its sentence has an origin
    by_text = {origin.text: origin for origin in change.origins if origin.kind == "user"}
    lost = (("rules", rule, True) for rule in lost_rules(change))
    new = ((field, rule, False) for field, rule in _ruled(change))
    for field, rule, is_removed in (*new, *lost) if by_text else ():
        if dictated := by_text.get(rule_sentence(rule)):
            found.append(FreshText(field, dictated, not dictated.is_used, is_removed=is_removed))
    return tuple(found)


def speaks_as(definition: ToolDefinition, tools: ToolsByName) -> OriginKind:
    """Whose words the results and errors of a tool are.

    Tools made of Python code that is named speak as that code, unless they declare ``open_world``:
    then their errors may be those of a remote system. An agent speaks as a model. A composite
    speaks as the least trusted tool that it calls. Every other tool speaks as a server.

    Example:
        >>> from agentkit.tools.definition import Origin
        >>> local = ToolDefinition(name="convert", origin=Origin(reference="units:convert"))
        >>> remote = ToolDefinition(name="convert", origin=Origin(kind="mcp"))
        >>> speaks_as(local, {}), speaks_as(remote, {})
        ('code', 'server')
    """
    parts = (
        tuple(demanded(definition, tools).values()) if definition.is_composite else (definition,)
    )
    if any(part is not None and part.origin.kind == "agent" for part in parts):
        return "model"
    return "code" if all(map(_is_code, parts)) else "server"


def _is_code(definition: ToolDefinition | None) -> bool:
    if definition is None or definition.signature.effects.open_world is True:
        return False
    origin = definition.origin
    is_local = origin.kind in {"function", "pydantic"} and bool(origin.reference)
    return definition.is_composite or is_local


def _origin_of(text: str, change: ProposedChange) -> TextOrigin:
    """Whose words a text is; what no origin names is whose the proposal is."""
    named = (origin for origin in change.origins if origin.text == text)
    return next(named, TextOrigin(text=text, kind=change.written_by))


def _waits(origin: TextOrigin, *, is_value: bool) -> bool:
    if origin.kind in TRUSTED:
        return False
    return not (is_value and origin.is_used and not _is_sentence(origin.text))


def _is_sentence(text: str) -> bool:
    """Whether a value or name has so many words that it may say something."""
    found = _WORD.findall(_spaced(text))
    # in scripts without spaces two characters count as a word
    count = sum((len(w) + 1) // 2 if ord(w[0]) >= FIRST_EAST_ASIAN else 1 for w in found)
    return count > _MOST_WORDS or len(text) > _LONGEST


def _not_in(there: Iterable[Text], texts: Iterable[Text]) -> tuple[Text, ...]:
    """The texts that ``there`` lacks, whole, about their subject and as often.

    Rules and worked calls are left out: they are compared as wholes elsewhere.
    """
    left = Counter((_subject(text), text.text) for text in there)
    found = []
    for text in texts:
        key = (_subject(text), text.text)
        if text.kind not in {"rule", "example"} and text.text and not left[key]:
            found.append(text)
        left[key] -= 1
    return tuple(found)


def _as_words(texts: Iterable[Text], change: ProposedChange) -> Iterator[_Words]:
    """New texts; of one that goes on after the text that stood in its place, only the new words."""
    told = {origin.text for origin in change.origins}
    stood = {text.field: text.text.rstrip(" .") for text in change.texts}
    for text in texts:
        before = "" if text.text in told else stood.get(text.field, "")
        added = text.text.removeprefix(before)
        yield text.field, added if any(map(str.isalnum, added)) else text.text, False


def _subject(text: Text) -> tuple[str, str]:
    """What a text is about: one parameter, the tool as a whole, or its tags or conditions."""
    is_of_tool = text.kind in {"summary", "usage_rule"}
    return ("tool" if is_of_tool else text.kind), text.parameter


def _new_calls(change: ProposedChange) -> Iterator[_Words]:
    """New worked calls: models copy them, numbers included."""
    had = sequence(change.base.examples)
    for at, example in enumerate(sequence(change.candidate.examples)):
        if not any(same(example, one) for one in had):
            parts = [getattr(example, name, None) for name in ("query", "arguments", "result")]
            yield f"examples[{at}]", "\n".join(_every_text(parts)) or "numbers alone", False


def _new_data(change: ProposedChange) -> Iterator[_Words]:
    """The texts in new rules and in the contract of a new tool."""
    for field, rule in _ruled(change):
        for text, is_value in _texts_of_rule(rule, change.base.signature.properties):
            yield field, text, is_value
    for field, part in _of_new_tool(change.candidate) if change.is_new else ():
        yield from ((field, text, False) for text in dict.fromkeys(_every_text(part)))


def _texts_of_rule(rule: Any, names: Container[str]) -> Iterator[tuple[str, bool]]:
    """The texts in a rule of a tool with parameters of these names, and which are values."""
    for name in getattr(rule, "__dataclass_fields__", {}):
        for text in _every_text(getattr(rule, name)) if name not in _NAMES else ():
            yield text, name in {"values", "example"}
    if isinstance(rule, Takes) and rule.parameter not in names:
        yield rule.parameter, True


def _ruled(change: ProposedChange) -> Iterator[tuple[str, Any]]:
    """The new rules, each with its place."""
    had = rules_of(change.base)
    for at, rule in enumerate(rules_of(change.candidate)):
        if not any(same(rule, one) for one in had):
            yield f"rules[{at}]", rule


def acts_through_others(definition: ToolDefinition, tools: ToolsByName) -> bool:
    """Whether a tool from elsewhere makes other tools act, or brings texts to hand to them.

    What its rules demand and its program calls runs for whoever uses it. So it waits for a person
    unless all of these are declared to only read and reach nothing outside; and so does a program
    or a rule with texts of its own, which its author chose. A program that calls other tools than
    its signature pins, or that nobody can read, waits too: its pins say nothing of what it does.

    A program that turns out to call what acts is not run. A rule stays when a tool turns out to do
    more than a file said, so what it demands must be code at hand that declares to only read.

    Args:
        definition: The tool.
        tools: The tools that its rules may demand and its program may call.
    """
    found = demanded(definition, tools)
    others = found.values()
    if not all(one is not None and _only_looks(one) for one in others):
        return True
    rules = rules_of(definition)
    bound = [one for name in found if (one := tools.get(name)) is not None and one.is_bound]
    if any(isinstance(rule, CallBefore) for rule in rules) and len(bound) < len(found):
        return True
    if any(_says_something(rule, definition) for rule in rules):
        return True
    if any(map(_hides_calls, filter(None, (definition, *others)))):
        return True
    own = {folded(name) for name in definition.signature.properties}
    at_hand = own | _contracts(one.definition for one in bound)
    named = at_hand | _contracts(others)
    return any(
        _is_worded(text) and folded(text) not in (named if place == _NAMES_OF_PARTS else at_hand)
        for place, part in _of_program(definition)
        for text in _every_text(part)
    )


def _contracts(definitions: Iterable[ToolDefinition | None]) -> set[str]:
    signatures = [one.signature for one in definitions if one is not None]
    return {
        folded(text) for one in signatures for text in _every_text([one.parameters, one.result])
    }


def _says_something(rule: Any, definition: ToolDefinition) -> bool:
    """Whether a rule holds texts of its author, also in the place of names of parameters."""
    signature = definition.signature
    if any(_is_worded(text) for text, _ in _texts_of_rule(rule, signature.properties)):
        return True
    named = (getattr(rule, "parameter", ""), *getattr(rule, "others", ()))
    names = [name for name in named if name and not isinstance(rule, Takes)]
    return not all(_PATH.fullmatch(one) and parts_at(signature.parameters, one) for one in names)


def _hides_calls(definition: ToolDefinition) -> bool:
    """Whether the program of a composite calls other tools than its signature says."""
    pinned = frozenset(child.name for child in definition.signature.children)
    return definition.body is not None and called_in(definition.body) != pinned


def _only_looks(definition: ToolDefinition) -> bool:
    return _only_reads(definition) and not definition.signature.effects.open_world


def _of_program(definition: ToolDefinition) -> Iterator[tuple[str, Any]]:
    """What the author of a program chose that calls may be made of, with its place."""
    if definition.body is None:
        return
    program = program_of(definition)
    if program is None:  # whatever it says, it cannot run
        yield "body", definition.body
        return
    yield from (("body", one.default.value) for one in program.parameters if one.default)
    nodes = tuple(walk(program))
    keys = {id(node.slice) for node in nodes if isinstance(node, ast.Subscript)}
    for node in nodes:
        if isinstance(
            node, ast.Constant
        ):  # a text in brackets reads a part, and is handed to nobody
            yield _NAMES_OF_PARTS if id(node) in keys else "body", node.value
        elif isinstance(node, ast.Call) and child_of(node):  # its schema may leave names open
            yield _NAMES_OF_PARTS, [name for name, _ in arguments_of(node)]
    for part in schemas_in(definition.signature.parameters):
        data = [part.get(keyword) for keyword in _CHOSEN]
        yield "parameters", [*data, *mapping(part.get("properties"))]
    names = (*definition.signature.properties, "result")
    for text in (*definition.specification.pre, *definition.specification.post):
        try:
            found = walk(parse_expression(text, names))
        except CompositeError:
            yield "conditions", text
        else:
            yield "conditions", [one.value for one in found if isinstance(one, ast.Constant)]


def _of_new_tool(definition: ToolDefinition) -> Iterator[tuple[str, Any]]:
    """What a new composite holds beside its words: its author's texts, and worked calls."""
    yield from _of_program(definition)
    for at, example in enumerate(sequence(definition.examples)):
        yield f"examples[{at}]", [example.query, example.arguments, example.result]


def _every_text(value: Any) -> Iterator[str]:
    """The texts inside JSON data of any size, names of fields included."""
    return leaves(value, most=sys.maxsize)


def _is_worded(text: str) -> bool:
    """Whether a text holds letters, signs beyond ASCII, or numbers that spell letters."""
    is_plain = text.isascii() and not any(map(str.isalpha, text))
    return not is_plain or _SPELLS.search(text) is not None


def _known(change: ProposedChange) -> Callable[[str], bool]:
    """Tells whether the tool, or a tool that a new composite calls, says a text already."""
    contract = change.base.signature
    said: list[Any] = [contract.parameters, contract.result]
    if change.is_new:  # its own contract may hold defaults that nobody knows
        tools = filter(None, (change.library.get(child.name) for child in contract.children))
        of_children = (tool.definition.signature for tool in tools)
        said = [[one.parameters, one.result] for one in of_children]
        said.append(list(contract.properties))
    exact = {folded(text) for text in _every_text(said)}
    # Worked calls are learned from users and tools, so they vouch for nothing.
    texts = folded("\n".join(text.text for text in change.texts if text.kind != "example"))

    @cache
    def is_known(text: str) -> bool:
        words = folded(text).strip()
        return words in exact or stands_in(words, texts)

    return is_known
