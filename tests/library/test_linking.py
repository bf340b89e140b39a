"""Code for stored definitions: composites over their children, and contracts of functions."""

from __future__ import annotations

import ast
from contextlib import closing
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Agent, Library, ToolDefinition, open_store, tool
from agentkit.agent import StorePolicy
from agentkit.composites.composite import composite_tool, program_to_json
from agentkit.composites.contracts import Conditions
from agentkit.composites.language import Program, child_call
from agentkit.composites.problems import CompositeLimits
from agentkit.composites.source import compose
from agentkit.errors import CodeDriftError, CompositeRunError, ContractViolation
from agentkit.evolution import ToolManager
from agentkit.evolution.insertion import Refused, check_composite
from agentkit.evolution.proposal import Proposal
from agentkit.interop.export import artifact_of, write_artifact
from agentkit.interop.export.artifact import dag_of
from agentkit.library import Author, LibraryChange
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.code_binding import pinned
from agentkit.library.code_registration import bind_code
from agentkit.library.dag import ancestors, depth, flat_size
from agentkit.library.library import broken_links, link, link_report
from agentkit.library.pins import library_faults, pin_faults, repinned
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel, primitive_library, sample_library
from agentkit.tools import definitions_from_json
from agentkit.tools.definition import (
    Description,
    EffectName,
    Effects,
    Example,
    Origin,
    Signature,
)
from agentkit.tools.rules import Between, OneOf
from agentkit.tools.tool import contract_of


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@tool(effects=["destructive"])
def wipe(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


TWICE = 'def twice(x: float) -> float:\n    "Twice."\n    return add(x, x)'
FOUR = 'def four(x: float) -> float:\n    "Four times."\n    return twice(twice(x))'


@pytest.fixture
def library():
    """As from a store: add, twice and four, none with code."""
    definitions = [add.definition]
    for text in (TWICE, FOUR):
        definitions.append(compose(text, Library(definitions).tools))
    return Library(definitions)


def reworded(definition: ToolDefinition) -> ToolDefinition:
    """The same tool with other words, so with another digest."""
    return replace(definition, description=Description(summary="Other words."))


def problems(library: Library) -> dict[str, list[str]]:
    """The codes of what stands in the way of each composite."""
    refused = link_report(library).refused
    return {name: [problem.code for problem in found] for name, found in refused.items()}


def test_binding_the_primitives_makes_composites_run(library):
    """Code is given to add alone; twice and four, which is made of twice, run on it."""
    bound = library.bind({"add": add})
    assert bound["four"](x=3) == 12
    assert bound["twice"].is_bound
    assert library["four"].function is None


def test_a_composite_without_code_below_has_none(library):
    """It says what it waits for; the call of it would be somebody else's work."""
    report = link_report(library)
    assert set(report.refused) == {"twice", "four"}
    assert problems(library) == {"twice": ["unbound_child"], "four": ["unbound_child"]}
    assert "'add', which has no function" in report.refused["twice"][0].message
    assert broken_links(library, "four") == ()
    with pytest.raises(TypeError, match="it is a composite: bind the tools that it calls"):
        report.library["four"](x=1)


def test_a_child_that_vanished_leaves_no_code(library):
    """Also what ran before: the tool that was taken out must not run through the back door."""
    rest = link(library.bind({"add": add}).without(["add"]))
    assert not rest["twice"].is_bound
    assert not rest["four"].is_bound
    assert problems(rest) == {"twice": ["missing_child"], "four": ["missing_child"]}
    assert "'four' calls 'twice', which cannot run" in broken_links(rest, "four")[0].message


def test_a_child_that_changed_leaves_no_code(library):
    """A composite runs with the children that it was validated with, or not at all."""
    bound = library.bind({"add": add})
    changed = link(bound.with_tools([add.with_definition(reworded(add.definition))]))
    assert problems(changed) == {"twice": ["changed_child"], "four": ["changed_child"]}
    assert changed["add"].is_bound


def test_calls_in_a_circle_never_get_code():
    """Foreign data with a cycle is refused with its path."""

    def calling(name: str, child: str) -> ToolDefinition:
        body = program_to_json(Program(parameters=(), body=(ast.Return(value=child_call(child)),)))
        return ToolDefinition(name=name, body=body)

    report = link_report(Library([calling("a", "b"), calling("b", "a")]))
    assert report.refused["a"][0].code == "recursive_call"
    assert "a -> b -> a" in report.refused["a"][0].message


def test_a_composite_needs_approval_when_a_child_does():
    """Approval is that of the children, and survives a round through a store."""
    tidy = compose(
        'def tidy(path: str) -> str:\n    "Tidy."\n    return wipe(path)', {"wipe": wipe}
    )
    bound = Library([wipe.definition, tidy]).bind({"wipe": wipe})
    assert bound["tidy"].needs_approval
    asked = bound.bind({"wipe": replace(wipe, requires_approval=False)})
    assert not asked["wipe"].needs_approval


def test_a_composite_keeps_its_limits_and_contracts(library):
    """Binding again keeps what ``composite_tool`` was told; without it nothing is checked."""
    bound = library.bind({"add": add})
    tight = bound.with_tools(
        composite_tool(tool.definition, bound.tools, limits=CompositeLimits(child_calls=1))
        for tool in [bound["twice"], bound["four"]]
    )
    with pytest.raises(CompositeRunError, match="call"):
        tight.bind({"add": add})["four"](x=1)
    guarded = replace(
        add.definition, specification=replace(add.definition.specification, pre=("a < 10",))
    )
    text = compose(TWICE, {"add": guarded_tool(guarded)})
    plain = link(Library([guarded_tool(guarded), text]))
    assert plain["twice"](x=10) == 20
    watched = composite_tool(text, plain.tools, contracts="always")
    with pytest.raises(ContractViolation):
        link(plain.with_tools([watched]))["twice"](x=10)


def guarded_tool(definition: ToolDefinition):
    """Add, with the conditions of ``definition``."""
    return add.with_definition(definition)


@tool
def plus(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@tool
def mul(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


TEXTS = (
    'def twice(x: float) -> float:\n    "Twice."\n    return plus(x, x)',
    'def area(a: float, b: float) -> float:\n    "An area."\n    return mul(a, b)',
    'def frame(a: float, b: float) -> float:\n    "A frame."\n    return twice(plus(a, b))',
    'def house(a: float, b: float) -> float:\n    "A house."\n    return plus(frame(a, b), area(a, b))',
)


def composed(*texts: str) -> Library:
    """The two primitives and a composite for each text, each made from those before it."""
    houses = Library([plus, mul])
    for text in texts:
        houses = houses.with_tools([compose(text, houses.tools)])
    return houses


@pytest.fixture
def houses():
    """The house calls plus, frame and area; frame calls twice and plus; twice calls plus."""
    return composed(*TEXTS)


def worded(definition: ToolDefinition, summary: str = "Other words.") -> ToolDefinition:
    """The definition with another summary, so with another digest."""
    return replace(definition, description=Description(summary=summary))


def codes(houses: Library, *names: str) -> list[tuple[str, str]]:
    """Composite and code of each fault."""
    return [(fault.place, fault.code) for fault in pin_faults(houses, names or None)]


def test_a_changed_child_is_found_in_each_composite_that_calls_it(houses):
    """Both digests are named, and what to do."""
    changed = houses.with_tools([worded(plus.definition)])
    assert codes(changed) == [
        ("twice", "changed_child"),
        ("frame", "changed_child"),
        ("house", "changed_child"),
    ]
    fault = pin_faults(changed, ["twice"])[0]
    assert plus.definition.digest[:12] in fault.message
    assert changed["plus"].definition.digest[:12] in fault.message
    assert "log --tool plus" in fault.advice


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(["plus", "mul", "twice", "area", "frame", "house"]), min_size=1))
def test_repinning_touches_the_changed_and_what_is_above(names):
    """What comes back is the changed tools and all their ancestors, and nothing is stale after."""
    houses = composed(*TEXTS)
    moved = repinned(houses, [worded(houses[name].definition) for name in names])
    above = {one for name in names for one in ancestors(houses, name)}
    assert {definition.name for definition in moved} == names | above
    assert pin_faults(houses.with_tools(moved)) == ()


@pytest.mark.parametrize("effects", [(), ("writes",), ("destructive",), ("open_world",)])
def test_a_composite_above_a_tool_that_does_more_is_not_repinned(effects):
    """A program whose calls only read is not let act by a change below; words move its pins."""

    def moved(*allowed):
        child = ToolDefinition(name="transfer", signature=Signature(effects=Effects.of(allowed)))
        return child, repinned(houses, [child])

    reading = ToolDefinition(name="transfer", signature=Signature(effects=Effects.of(["reads"])))
    text = 'def balance() -> int:\n    "The balance."\n    return transfer()'
    houses = Library([reading, compose(text, Library([reading]))])
    child, changed = moved(*effects)
    assert changed == (child,)
    assert [one.code for one in pin_faults(houses.with_tools(changed))] == ["changed_child"]
    assert [one.name for one in repinned(houses, [worded(reading)])] == ["transfer", "balance"]


def test_that_code_does_not_write_only_code_says():
    """A catalogue that calls a tool of ours harmless is not believed; a reviewer's caution is."""
    undeclared = Signature(effects=Effects())
    assert not contract_of(
        undeclared, Signature(effects=Effects.of(["reads"]))
    ).effects.is_read_only
    assert contract_of(
        undeclared, Signature(effects=Effects.of(["destructive"]))
    ).effects.destructive


@pytest.mark.parametrize("name", get_args(EffectName))
@pytest.mark.parametrize("claim", [True, False])
def test_of_effects_that_code_leaves_open_only_caution_holds(name, claim):
    """Each effect that the library adds makes the runtime more careful, and never freer."""
    held = Signature(effects=Effects(**{name: claim}))
    is_careful = claim != (name == "idempotent")
    found = getattr(contract_of(Signature(), held).effects, name)
    assert found is (claim if is_careful else None)


HARMLESS = Effects(reads=False, writes=False, destructive=False, idempotent=True, open_world=False)


@pytest.mark.filterwarnings("ignore::agentkit.errors.LibraryWarning")
@pytest.mark.parametrize("when", ["before", "while", "artifact", "bound", "pinned"])
@pytest.mark.parametrize("declared", [("writes",), ("destructive",), ()])
def test_a_file_makes_no_call_run_twice_and_none_run_unasked(when, declared, tmp_path):
    """A file calls a tool of ours harmless, before our code is seen, while it runs, or as the store."""
    paid = []

    @tool(effects=declared)
    def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        raise ConnectionError("the line dropped")

    forged = replace(pay.definition, signature=replace(pay.definition.signature, effects=HARMLESS))
    store = open_store("memory:")
    change = LibraryChange(proposal_id="1", upserts=(forged,), reason="imported")
    if when == "artifact":
        write_artifact(artifact_of(Library([forged])), tmp_path / "theirs.json")
        where = {"library": open_store(f"artifact:{tmp_path / 'theirs.json'}").load()}
    elif when == "bound":
        where = {"library": Library([forged]).bind([pay])}
    else:
        where = {"store": store, "store_policy": StorePolicy(pin=1 if when == "pinned" else None)}
    if when != "while":
        store.commit(change, expected_version=0)
    model = ScriptedModel([[ToolCall(call_id="1", name="pay", arguments={"to": "A"})], "done"])
    agent = Agent(model, tools=[] if when == "bound" else [pay], **where)
    if when == "while":
        store.commit(change, expected_version=1)
        agent.refresh()
    if "destructive" in declared:
        assert agent.run_sync("pay A").stop_reason == "deferred"
        assert paid == []
    else:
        agent.run_sync("pay A")
        assert paid == ["A"]


@tool(effects=["reads"])
def look_up(key: str) -> int:
    """Look a number up."""
    return len(key)


@pytest.fixture
def sound():
    """The tool both over look_up."""
    text = 'def both(a: str, b: str) -> int:\n    "Both."\n    return look_up(a) + look_up(b)'
    return Library([look_up, compose(text, {"look_up": look_up})])


def faults_of(sound: Library, *names: str) -> list[tuple[str, str]]:
    """Tool and code of each."""
    return [(fault.place, fault.code) for fault in library_faults(sound, names or None)]


def changed_both(sound: Library, **parts) -> Library:
    """The houses with another revision of both."""
    return sound.with_tools([replace(sound["both"].definition, **parts)])


def test_what_was_composed_is_sound(sound):
    """Nothing is found, and primitives have nothing to find."""
    assert library_faults(sound) == ()
    assert library_faults(sound, ["look_up"]) == ()


def test_effects_are_those_of_the_children(sound):
    """A composite may not claim to do less than the tools that it calls."""
    signature = replace(sound["both"].definition.signature, effects=Effects(reads=False))
    (fault,) = library_faults(changed_both(sound, signature=signature))
    assert fault.code == "effects"
    assert "declares not reads, its children together reads, not writes" in fault.message
    bare = replace(signature, effects=Effects())
    assert "declares no effects" in library_faults(changed_both(sound, signature=bare))[0].message


def test_a_composite_that_claims_less_than_its_children_is_not_run(sound):
    """Whatever wrote it there: it has no code, and the effect is named."""
    own = sound["both"].definition.signature
    free = replace(own, effects=replace(own.effects, idempotent=True))
    refused = link_report(changed_both(sound, signature=free)).refused
    assert [problem.code for problem in refused["both"]] == ["effects"]
    assert "idempotent" in refused["both"][0].message
    careful = replace(own, effects=replace(own.effects, destructive=True))
    assert link_report(changed_both(sound, signature=careful)).refused == {}


def test_programs_of_any_origin_keep_the_rules(sound):
    """A body that breaks a rule of the language is told."""
    body = sound["both"].definition.body
    twice = {**body, "source": f"{body['source']}    return 1\n"}
    (fault,) = library_faults(changed_both(sound, body=twice))
    assert fault.code == "unreachable_code"


OLD = """def old(x):
    y = look(x=x)
    if len([1]) > 0:
        return look(x=x)
    return x
"""


@tool(effects=Effects.pure())
def look(x: float) -> float:
    """Look."""
    return x


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/library.db", "dir:{}/tools"])
def test_an_unreadable_composite_leaves_the_others(url, tmp_path):
    """It alone has no code, for one reason; what an older checker let pass runs as before."""
    made = compose('def seen(x: float) -> float:\n    "See."\n    return look(x)', {"look": look})
    bodies = {"old": {"format": 2, "source": OLD}, "newer": {"format": 9}}
    others = (replace(made, name=name, body=body) for name, body in bodies.items())
    with closing(open_store(url.format(tmp_path))) as store:
        upserts = (look.definition, made, *others)
        change = LibraryChange(proposal_id="one", upserts=upserts, reason="These came before.")
        store.commit(change, expected_version=0)
        held = store.load()
    report = link_report(held.bind({"look": look}))
    assert set(report.refused) == {"newer"}
    assert report.library["old"](x=2) == report.library["seen"](x=2) == 2
    assert problems(held.bind({"look": look})) == {"newer": ["malformed_program"]}
    (fault,) = library_faults(held)
    assert (fault.place, fault.code) == ("newer", "malformed_program")
    assert "flat_size" in dag_of(held)["old"]
    assert "flat_size" not in dag_of(held)["newer"]
    for name in ("old", "newer"):
        with pytest.raises(Refused):
            check_composite(held[name].definition, held, is_new=True)


def test_conditions_of_composites_must_be_readable(sound):
    """Each condition that is no expression over the parameters is a fault of its own."""
    specification = replace(
        sound["both"].definition.specification, pre=("len(a) > 0", "c > 1"), post=("result >",)
    )
    found = faults_of(changed_both(sound, specification=specification))
    assert found == [("both", "condition"), ("both", "condition")]


TOOLS = {tool.name: tool for tool in primitive_library()}
SAMPLE_TOOLS = {tool.name: tool for tool in sample_library()}
ALL = TOOLS | SAMPLE_TOOLS


def test_there_are_as_many_as_in_the_paper():
    """The library has 42 primitives (CoCoDA, appendix E)."""
    assert len(TOOLS) == 42


@pytest.mark.parametrize("name", ALL)
def test_examples_are_what_the_tool_returns(name):
    """Calling a tool as in an example gives its result, which keeps the conditions; None does not."""
    tool = ALL[name]
    conditions = Conditions(tool.definition)
    for example in tool.definition.examples:
        result = tool(**example.arguments)
        assert result == example.result
        assert type(result) is type(example.result)
        if name in TOOLS:
            assert conditions.after(example.arguments, result) is None
            assert result is None or conditions.after(example.arguments, None) is not None


LIBRARY = primitive_library()
SALES = [
    {"region": "EU", "amount": 120},
    {"region": "US", "amount": 80},
    {"region": "EU", "amount": 40},
]

QUADRATIC_EXPR = """
def quadratic_expr(a: float, b: float, c: float, x: float) -> float:
    '''Evaluate a*x**2 + b*x + c at x (CoCoDA, appendix F.2).'''
    return add(add(mul(a, pow_int(x, 2)), mul(b, x)), c)
"""
SUM_WHERE = """
def sum_where(rows: list[dict[str, Any]], column: str, predicate: Expr["row -> bool"]) -> float:
    '''Sum a numeric column over rows satisfying a predicate (CoCoDA, appendix F.2).'''
    return sum_list(select_column(filter_rows(rows, predicate), column))
"""
COMPUTE_RATIO = """
def compute_ratio(part: float, whole: float) -> float:
    '''Part of a whole in percent.'''
    return mul(div(part, whole), 100)
"""
SOLVE_QUADRATIC = """
def solve_quadratic(a: float, b: float, c: float) -> list[float]:
    '''The real roots of a*x**2 + b*x + c (CoCoDA, appendix H.2).'''
    discriminant = sub(pow_int(b, 2), mul(4, mul(a, c)))
    if discriminant < 0:
        return []
    root = sqrt(discriminant)
    signs = [-1, 1] if root > 0 else [1]
    return [div(add(neg(b), mul(sign, root)), mul(2, a)) for sign in signs]
"""

WRITTEN = [
    (QUADRATIC_EXPR, {"a": 1, "b": -3, "c": 2, "x": 2}, 0, 5),
    (QUADRATIC_EXPR, {"a": 2, "b": 0, "c": -1, "x": 3}, 17, 5),
    (QUADRATIC_EXPR, {"a": 0, "b": 1, "c": 0, "x": 5}, 5, 5),
    (SUM_WHERE, {"rows": SALES, "column": "amount", "predicate": 'row["region"] == "EU"'}, 160, 3),
    (COMPUTE_RATIO, {"part": 15, "whole": 60}, 25.0, 2),
    (SOLVE_QUADRATIC, {"a": 1, "b": -5, "c": 6}, [2.0, 3.0], 4),
    (SOLVE_QUADRATIC, {"a": 1, "b": 0, "c": 4}, [], 4),
]


def bound(source):
    """The composite of a text, with every contract checked at each call."""
    return composite_tool(compose(source, LIBRARY.tools), LIBRARY.tools, contracts="always")


@pytest.mark.parametrize(("source", "arguments", "result", "size"), WRITTEN)
def test_composites_of_the_paper_and_others(source, arguments, result, size):
    """The text composes, runs with all conditions checked, and stands for so many primitives."""
    tool = bound(source)
    assert tool(**arguments) == result
    grown = LIBRARY.with_tools([tool])
    assert depth(grown, tool.name) == 1
    assert flat_size(grown, tool.name) == size
    assert tool.definition.signature.effects.is_read_only


ADA = Author(kind="person", name="Ada")


@pytest.fixture
def store():
    """An empty store."""
    with_events = open_store("memory:")
    yield with_events
    with_events.close()


@tool
def loan(amount: float, months: int) -> str:
    """Offer a loan."""
    return f"{amount} over {months}"


def promote(store, name="loan", *, rules=(), summary="", examples=()):
    """Give a tool of the library learned words, rules and examples, through a proposal."""
    manager = ToolManager(store)
    before = manager.library[name].definition
    learned = replace(
        before,
        description=replace(before.description, summary=summary or before.description.summary),
        specification=replace(before.specification, rules=rules),
        examples=examples,
    )
    proposal = Proposal.of(before, learned, stream="person", author=ADA, reason="seen in use")
    record = manager.submit(proposal)
    assert not record.failed, record.failed
    manager.approve(proposal.proposal_id, person=ADA)
    manager.advance(proposal.proposal_id)
    assert manager.library[name].definition.digest == learned.digest
    return proposal.proposal_id


def shown(library, name="loan"):
    """The schema and the sentence that a model reads."""
    definition = library[name].definition
    return definition.parameters_schema, definition.description.summary


def test_a_function_that_the_library_does_not_know_is_registered_with_an_event(store):
    """One event says who wrote what; a second start writes nothing."""
    library, binding = bind_code(store, [loan])
    assert (binding.registered, library.version, binding.library_version) == (("loan",), 1, 1)
    (event,) = store.events()
    assert (event.kind, event.facts["operation"], event.tool_name) == (
        "written",
        "register",
        "loan",
    )
    assert verify_chain(store.events()) == ()
    assert verify_library(store, store.events()) == ()
    again, binding = bind_code(store, [loan])
    assert (binding.registered, binding.notes, again.version) == ((), (), 1)


def test_what_was_promoted_is_what_models_see(store):
    """The function runs under the learned rule and sentence."""
    bind_code(store, [loan])
    promote(store, rules=(OneOf(parameter="months", values=(36, 48)),), summary="Offer a car loan.")
    library, _ = bind_code(store, [loan])
    schema, summary = shown(library)
    assert (schema["properties"]["months"]["enum"], summary) == ([36, 48], "Offer a car loan.")
    assert library["loan"](amount=1.0, months=36) == "1.0 over 36"


def test_a_contract_that_changed_in_code_wins_and_what_was_learned_is_carried_over(store):
    """A new parameter in code; the learned rule, sentence and fitting example stay."""
    bind_code(store, [loan])
    rule = OneOf(parameter="months", values=(36, 48))
    kept = Example(arguments={"amount": 5.0, "months": 36}, result="ok", query="a loan")
    promote(store, rules=(rule,), summary="Offer a car loan.", examples=(kept,))

    @tool(name="loan")
    def newer(amount: float, months: int, deposit: float = 0.0) -> str:
        """Offer a loan."""
        return "newer"

    library, binding = bind_code(store, [newer])
    definition = library["loan"].definition
    assert binding.revised == ("loan",)
    assert "deposit" in definition.signature.properties
    assert definition.specification.rules == (rule,)
    assert (definition.description.summary, definition.examples) == ("Offer a car loan.", (kept,))
    assert binding.notes == ("loan: the code adds deposit; a new revision keeps what was learned",)
    assert store.events()[-1].facts["operation"] == "bind"
    assert verify_library(store, store.events()) == ()
    assert bind_code(store, [newer])[1].revised == ()


def test_words_that_code_and_library_changed_differently_are_named(store):
    """The code's sentence is shown with its new contract; history keeps the learned one."""
    bind_code(store, [loan])
    promote(store, summary="Offer a car loan.")

    @tool(name="loan")
    def newer(amount: float, months: int, deposit: float = 0.0) -> str:
        """Offer a loan with a deposit."""
        return "newer"

    library, binding = bind_code(store, [newer])
    assert shown(library)[1] == "Offer a loan with a deposit."
    assert store.events()[-1].facts["not_carried_over"] == {"loan": ["description.summary"]}
    assert "description.summary" in binding.notes[0]
    assert store.history("loan")[-2].definition.description.summary == "Offer a car loan."


def test_a_rule_about_a_parameter_that_is_gone_is_named(store):
    """Nothing can hold it any more, so the line and the event say which one it was."""
    bind_code(store, [loan])
    promote(store, rules=(Between(parameter="months", minimum=6, maximum=60),))

    @tool(name="loan")
    def newer(amount: float, plan: str) -> str:
        """Offer a loan."""
        return "newer"

    _, binding = bind_code(store, [newer])
    (lost,) = store.events()[-1].facts["not_carried_over"]["loan"]
    assert "months" in lost
    assert lost in binding.notes[0]


def test_a_docstring_that_changed_is_told_and_does_not_replace_the_librarys_words(store):
    """The library's words hold until somebody takes those of the code."""
    bind_code(store, [loan])

    @tool(name="loan")
    def reworded(amount: float, months: int) -> str:
        """Offer a cheap loan."""
        return "reworded"

    library, binding = bind_code(store, [reworded])
    assert shown(library)[1] == "Offer a loan."
    assert "its docstring has changed" in binding.notes[0]


def test_frozen_refuses_what_would_be_written(store):
    """A function that is new, and later one that changed; nothing is written."""
    with pytest.raises(CodeDriftError, match="loan: library version 0 does not have it"):
        bind_code(store, [loan], frozen=True)
    assert store.versions() == ()
    bind_code(store, [loan])
    assert bind_code(store, [loan], frozen=True)[0].version == 1
    other = replace(loan, definition=replace(loan.definition, name="far"))
    with pytest.raises(CodeDriftError) as refused:
        pinned(store, 1, [other], frozen=True)
    assert refused.value.differences == ("far: library version 1 does not describe this code",)


def test_a_pinned_version_is_used_and_nothing_is_written(store):
    """The version before the promotion is what models see, and code is bound to it."""
    bind_code(store, [loan])
    promote(store, summary="Offer a car loan.")
    library, binding = pinned(store, 1, [loan])
    assert (shown(library)[1], library.version, binding.library_version) == ("Offer a loan.", 1, 1)
    agent = Agent(ScriptedModel(["hi"]), tools=[loan], store=store, store_policy=StorePolicy(pin=1))
    assert agent.refresh().version == 1
    assert agent.run_sync("hi").episode.library_version == 1


def test_a_store_that_is_only_read_is_used_as_it_is(tmp_path, store):
    """An artifact takes no writes; the agent starts, and says what was not registered."""
    far = replace(loan.definition, name="far")
    write_artifact(artifact_of(Library([far])), tmp_path / "other.json")
    library, binding = bind_code(open_store(f"artifact:{tmp_path / 'other.json'}"), [loan])
    assert "loan" in library
    assert binding.notes[0].startswith("loan: not written to the library: an artifact")


def test_agents_that_start_together_register_once(tmp_path):
    """Another writer may commit between the look and the write."""
    url = f"sqlite:///{tmp_path / 'library.db'}"
    first, second = open_store(url), open_store(url)

    class Late:
        """A store whose first answer is from before the other agent's commit."""

        def __init__(self):
            self.waits = True

        def __getattr__(self, name):
            return getattr(second, name)

        def load(self, version=None):
            library = second.load(version)
            if self.waits:
                self.waits = False
                bind_code(first, [loan])
            return library

    library, binding = bind_code(Late(), [loan])
    assert (library.version, binding.registered) == (1, ())
    first.close()
    second.close()


@given(st.lists(st.sampled_from(["amount", "months", "deposit", "term"]), unique=True, min_size=1))
def test_whatever_the_code_becomes_its_contract_is_that_of_the_library(names):
    """Binding ends with the parameters of the code, and a second binding changes nothing."""
    store = open_store("memory:")
    bind_code(store, [loan])
    promote(store, rules=(OneOf(parameter="months", values=(36, 48)),), summary="A car loan.")
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    signature = replace(loan.definition.signature, parameters=schema)
    code = replace(loan, definition=replace(loan.definition, signature=signature))
    library, _ = bind_code(store, [code])
    definition = library["loan"].definition
    assert definition.signature.parameters == schema
    assert all(rule.parameter in names for rule in definition.specification.rules)
    assert bind_code(store, [code])[1].revised == ()
    assert verify_library(store, store.events()) == ()


def test_no_file_names_the_code_that_runs():
    """A tool of somebody else's file that claims to be code of ours, renamed, stays without code."""

    @tool(effects=("destructive",))
    def pay(to: str) -> str:
        """Pay."""
        return to

    claim = Origin(kind="function", reference=pay.definition.origin.reference, original_name="pay")
    forged = replace(pay.definition, name="weather", origin=claim).to_json()
    (found,) = definitions_from_json([forged]).definitions
    store = open_store("memory:")
    store.commit(LibraryChange(proposal_id="1", upserts=(found,)), expected_version=0)
    library, _ = bind_code(store, [pay])
    assert {one.name: one.is_bound for one in library} == {"weather": False, "pay": True}
