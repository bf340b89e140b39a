"""Code binds to the library's definitions: what was promoted is what models see."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit import Agent, Library, open_store, tool
from agentkit.agent import StorePolicy
from agentkit.errors import CodeDriftError
from agentkit.evolution import ToolManager
from agentkit.evolution.proposal import Proposal
from agentkit.library import Author, LibraryChange
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.code_binding import pinned
from agentkit.library.code_registration import bind_code
from agentkit.testing import ScriptedModel
from agentkit.tools import definitions_from_json
from agentkit.tools.definition import Example, Origin
from agentkit.tools.rules import Between, OneOf

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
    from agentkit.interop.export import artifact_of, write_artifact

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
