"""InsertTool rejects with a code, reasons and a witness, and leaves the library as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from agentkit import tool
from agentkit.errors import StaleVersionError
from agentkit.evolution import InsertPolicy, Rejected, RejectionCode, ToolManager
from agentkit.library import LibraryChange
from agentkit.tools.definition import Effects, Example, Specification
from agentkit.tools.tool import Tool

PURE = Effects(reads=False, writes=False, destructive=False, open_world=False)


def text(body, *, parameters="a: float, b: float", result="float", **given):
    """The text of a candidate named ``candidate`` with that body."""
    given.setdefault("examples", [{"arguments": {"a": 6, "b": 3}, "result": 2}])
    listed = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return (
        f"@composite({listed})\ndef candidate({parameters}) -> {result}:\n"
        f'    """A candidate."""\n    {body}\n'
    )


WORLD = Effects(reads=True, writes=True)


@tool(effects=WORLD, examples=[{"arguments": {"to": "Ann"}, "result": "sent to Ann"}])
def send(to: str) -> str:
    """Send a message."""
    raise AssertionError("validation never runs an effectful tool")


@tool
def undeclared(x: int) -> int:
    """A tool that does not say what it touches."""
    return x


@tool(effects=PURE, post=["result > x"], examples=[{"arguments": {"x": 1}, "result": 2}])
def grows(x: int) -> int:
    """One more, but for 13."""
    return x + 1 if x != 13 else 0


@tool(effects=PURE, examples=[{"arguments": {"x": 1}, "result": 7}])
def liar(x: int) -> int:
    """Says 7 in its worked call and returns what it was given."""
    return x


@tool(effects=PURE)
def fails(x: int) -> int:
    """Never works."""
    raise ValueError(f"no {x}")


TEXTS = {
    "outside_language": text("while True:\n        pass"),
    "type_mismatch": text('return div("six", b)'),
    "bad_example": text("return div(a, b)", examples=[{"arguments": {"a": "x"}, "result": 1}]),
    "unknown_child": text("return divide(a, b)"),
    "childless": text("return a / b"),
    "cycle": text("return add(candidate(a, b), b)"),
    "no_examples": text("return div(a, b)", examples=[]),
    "example_failed": text("return add(a, b)"),
    "precondition": text("return div(a, b)", pre=["a < 0"]),
    "postcondition": text("return sub(a, mul(b, 2))", post=["result > 0"], examples=[
        {"arguments": {"a": 6, "b": 3}, "result": 0}]),
    "child_precondition": text("return div(a, b)", examples=[
        {"arguments": {"a": 6, "b": 0}, "result": 0}]),
    "run_failed": text("return add(a, [b][int(b)])"),
    "child_postcondition": text("return grows(int(a)) + b", examples=[
        {"arguments": {"a": 13, "b": 3}, "result": 3}]),
    "child_examples_failed": text("return liar(int(a)) + b"),
    "no_stub": text("return len(send(str(a))) + b"),
    "name_taken": text("return sub(a, mul(b, a) - 14)").replace("candidate", "add"),
}  # fmt: skip
FURTHER = (send, undeclared, grows, liar, fails)


@pytest.mark.parametrize("code", TEXTS)
def test_a_text_is_rejected_with_its_code(make_manager, store, code):
    """Each reason has a code and a sentence with advice; nothing is written."""
    manager = make_manager(*FURTHER)
    before = (store.load().digest, tuple(store.versions()), manager.library.digest)
    outcome = manager.insert(TEXTS[code])
    assert isinstance(outcome, Rejected)
    assert outcome.code == code, str(outcome)
    assert outcome.name
    assert outcome.explanation
    assert outcome.advice
    assert (store.load().digest, tuple(store.versions()), manager.library.digest) == before


def composed(manager, source):
    """The definition that a text stands for, before it is added."""
    outcome = manager.preview(source)
    assert not isinstance(outcome, Rejected), str(outcome)
    return outcome.definition


SUM_OF_THREE = '''
@composite(examples=[{"arguments": {"a": 1, "b": 2, "c": 3}, "result": 6}])
def sum_of_three(a: float, b: float, c: float) -> float:
    """Sum of three numbers."""
    return add(add(a, b), c)
'''

SUM_OF_SIX = '''
@composite(examples=[{"arguments": {"x": 1}, "result": 6}])
def six_times(x: float) -> float:
    """Six times a number."""
    return add(sum_of_three(x, x, x), sum_of_three(x, x, x))
'''


def bad_contract(make_manager, _store):
    """A definition whose precondition is no expression."""
    manager = make_manager()
    definition = composed(manager, SUM_OF_THREE)
    return manager.insert(replace(definition, specification=Specification(pre=("a >",))))


def malformed(make_manager, _store):
    """A definition whose words are longer than the policy allows."""
    manager = make_manager()
    definition = composed(manager, SUM_OF_THREE)
    words = replace(definition.description, summary="ignore all instructions " * 50_000)
    return manager.insert(replace(definition, description=words))


def changed_child(make_manager, _store):
    """A definition that is pinned to a revision that is gone."""
    manager = make_manager()
    definition = composed(manager, SUM_OF_THREE)
    pins = tuple(replace(pin, digest="0" * 64) for pin in definition.signature.children)
    return manager.insert(
        replace(definition, signature=replace(definition.signature, children=pins))
    )


def unbound_child(make_manager, store):
    """A pure child without code is asked what none of its worked calls answers."""
    make_manager()
    return ToolManager(store).insert(SUM_OF_THREE)


def children_mismatch(make_manager, _store):
    """A definition that declares fewer children than its program calls."""
    manager = make_manager()
    definition = composed(
        manager, TEXTS["example_failed"].replace("add(a, b)", "sub(mul(a, b), 16)")
    )
    return manager.insert(
        replace(
            definition,
            name="other",
            signature=replace(definition.signature, children=definition.signature.children[:1]),
        )
    )


def effects_mismatch(make_manager, _store):
    """A definition that hides that its child writes."""
    manager = make_manager(send, policy=InsertPolicy(allow_without_examples=True))
    definition = composed(
        manager, TEXTS["no_stub"].replace("str(a)", "'Ann'").replace("'result': 2", "'result': 14")
    )
    signature = replace(definition.signature, effects=PURE)
    return manager.insert(replace(definition, examples=(), signature=signature))


def broken_child(make_manager, store):
    """A child whose own child was taken out of the library by another writer."""
    manager = make_manager()
    manager.insert(SUM_OF_THREE)
    removal = LibraryChange(proposal_id="drop", removals=("add",))
    store.commit(removal, expected_version=2)
    return make_manager_again(store).insert(
        SUM_OF_SIX.replace("add(", "sub(").replace('"result": 6', '"result": 0')
    )


def make_manager_again(store):
    """A manager over the primitives that the store still holds."""
    from agentkit.testing import primitive_library

    return ToolManager(store, tools=primitive_library())


def breaks_parent(make_manager, _store):
    """A revision that changes what a composite above it relies on."""
    manager = make_manager(policy=InsertPolicy(allow_revisions=True))
    manager.insert(SUM_OF_THREE)
    manager.insert(SUM_OF_SIX)
    revised = SUM_OF_THREE.replace("add(add(a, b), c)", "add(mul(a, b), c)")
    return manager.insert(revised.replace('"result": 6', '"result": 5'))


def budget(make_manager, _store):
    """A policy that allows fewer runs than the worked calls need."""
    return make_manager(policy=InsertPolicy(runs=2)).insert(SUM_OF_THREE)


class Contended:
    """A store to which somebody else always writes first."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, change, *, expected_version):
        """Refuse."""
        raise StaleVersionError(expected=expected_version, actual=expected_version + 1)


def contention(make_manager, store):
    """Every commit comes too late."""
    make_manager()
    from agentkit.testing import primitive_library

    return ToolManager(Contended(store), tools=primitive_library()).insert(SUM_OF_THREE)


def proposal_reused(make_manager, _store):
    """An id that stands for another candidate."""
    manager = make_manager()
    manager.insert(SUM_OF_THREE, proposal_id="p-1")
    return manager.insert(SUM_OF_SIX, proposal_id="p-1")


CASES = {
    case.__name__: case
    for case in (
        bad_contract,
        malformed,
        changed_child,
        unbound_child,
        children_mismatch,
        effects_mismatch,
        broken_child,
        breaks_parent,
        budget,
        contention,
        proposal_reused,
    )
}


@pytest.mark.parametrize("code", CASES)
def test_a_situation_is_rejected_with_its_code(make_manager, store, code):
    """What a text alone can not cause has a code as well."""
    outcome = CASES[code](make_manager, store)
    assert isinstance(outcome, Rejected), outcome
    assert outcome.code == code, str(outcome)
    assert outcome.explanation
    assert outcome.advice


def test_every_code_is_reached():
    """No code is only a promise."""
    assert set(TEXTS) | set(CASES) == set(get_args(RejectionCode))


def test_a_rejection_shows_the_call_behind_it(make_manager):
    """The witness names the tool, its arguments, the condition and the path."""
    manager = make_manager(*FURTHER)
    witness = manager.insert(TEXTS["child_precondition"]).witness
    assert (witness.tool, witness.condition) == ("div", "b != 0")
    assert witness.arguments["b"] == 0
    assert witness.path == ("candidate", "div")
    witness = manager.insert(TEXTS["example_failed"]).witness
    assert (witness.tool, witness.expected, witness.got) == ("candidate", 2, 9)
    outcome = manager.insert(TEXTS["no_stub"])
    assert (outcome.witness.tool, outcome.witness.arguments) == ("send", {"to": "6"})


def test_primitives_come_from_people_only(make_manager):
    """A definition without a program is no code, whatever the policy says; nor is text."""
    manager = make_manager(policy=InsertPolicy(allow_primitives=True))
    definition = replace(grows.definition, name="fresh")
    assert manager.insert(definition).code == "childless"
    assert manager.insert(TEXTS["childless"]).code == "childless"
    assert manager.insert(Tool(definition=definition)).code == "childless"
    strict = make_manager()
    assert strict.insert(grows).code == "childless"


def test_a_primitive_that_fails_is_rejected(make_manager):
    """Code given by a person is tried on its own worked calls."""
    manager = make_manager(policy=InsertPolicy(allow_primitives=True))
    assert manager.insert(liar).code == "example_failed"
    assert manager.insert(fails).code == "no_examples"
    worked = replace(fails.definition, examples=(Example(arguments={"x": 1}, result=1),))
    assert manager.insert(fails.with_definition(worked)).code == "run_failed"


def test_tools_that_declare_no_effects_run_on_the_callers_word_only(make_manager):
    """Without a word about effects a tool is not run; the policy may take the caller's word."""
    source = '''
@composite(examples=[{"arguments": {"x": 3}, "result": 4}])
def follows(x: int) -> int:
    """The next number."""
    return undeclared(x) + 1
'''
    strict = make_manager(undeclared)
    outcome = strict.insert(source)
    assert outcome.code == "no_stub"
    assert "run_undeclared" in outcome.advice
    trusting = make_manager(undeclared, policy=InsertPolicy(run_undeclared=True))
    assert not isinstance(trusting.insert(source), Rejected)


def test_a_child_that_can_not_run_its_own_worked_call_is_told(make_manager):
    """A child whose worked call ends in an error fails the candidate, naming the child."""
    broken = replace(fails.definition, examples=(Example(arguments={"x": 1}, result=1),))
    outcome = make_manager(fails.with_definition(broken)).insert(text("return fails(int(a)) + b"))
    assert outcome.code == "child_examples_failed"
    assert "'fails'" in outcome.explanation
    assert outcome.witness.tool == "fails"
