"""Rules that lock a tool, and what rules demand of others: who must agree."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentkit import Library, ModelRetry, ToolDefinition, open_store, tool
from agentkit.cli.review_view import print_review
from agentkit.evaluation import (
    Benchmark,
    ExactCalls,
    GoldCall,
    Task,
    episodes_of_run,
    evaluate,
    with_tools,
)
from agentkit.evaluation.held_out import HeldOut
from agentkit.evolution import ToolManager
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.proposers.streams import FeedbackStream
from agentkit.evolution.review import review_of
from agentkit.evolution.round import evolve
from agentkit.evolution.validation import ProposedChange, ValidationPolicy, validate
from agentkit.library.events import Author
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import FunctionModel, ScriptedModel
from agentkit.tools.definition import ChildReference, Effects
from agentkit.tools.rules import Between, CallBefore, Condition, Form, OneOf, Requires
from agentkit.tools.rules.checking import demanded

ADA = Author(kind="person", name="Ada")
MODEL = Author(kind="model", name="critic", prompt_hash="0" * 64)
EVIDENCE = Author(kind="program", name="evidence")
TERMS = OneOf(parameter="periods", values=(36, 48, 60))


@tool
def wipe_notes() -> str:
    """Erase every note."""
    return "gone"


@tool(effects=["reads"])
def read_terms() -> str:
    """Read which terms there are."""
    return "36, 48, 60"


@tool(effects=["reads"])
def loan_rate(euro: int, periods: int, note: str = "") -> float:
    """What a loan costs a month.

    Args:
        euro: The sum.
        periods: Term in months; one of 36, 48, 60.
        note: A note about the loan.
    """
    if periods not in (36, 48, 60):
        raise ModelRetry("no such term")
    return round(euro / periods, 2)


TOOLS = (loan_rate, wipe_notes, read_terms)
LOAN = loan_rate.definition
WORLD = {
    "definitions": tuple(one.definition for one in TOOLS),
    "environment": with_tools(TOOLS),
}


def clerk(request):
    """Asks for the term that the customer names, or for the nearest one that the schema lists."""
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return last.text
    euro, months = (int(word) for word in last.text.split() if word.isdigit())
    terms = request.tools[0].parameters_schema["properties"]["periods"].get("enum")
    if terms:
        months = min(terms, key=lambda term: abs(term - months))
    return [ToolCall(call_id="1", name="loan_rate", arguments={"euro": euro, "periods": months})]


def customer(number, months, term):
    """A task whose right answer is one call."""
    gold = GoldCall(name="loan_rate", arguments={"euro": 1000 * number, "periods": term})
    return Task(
        task_id=f"c{number}",
        category="loans",
        request=f"A loan of {1000 * number} euro over {months} months",
        offered=("loan_rate",),
        expects=(ExactCalls(calls=(gold,)),),
    )


async def round_with(*rules, seen=6):
    """A round in which a model suggests rules, with the manager afterwards."""
    wishes = [(50, 48), (30, 36), (66, 60), (40, 36), (52, 48), (36, 36), (70, 60)]
    tasks = tuple(customer(at, *wishes[at % 7]) for at in range(1, 25))
    store, model = open_store("memory:"), FunctionModel(clerk, name="clerk")
    manager = ToolManager(store, tools=TOOLS)
    manager.register(TOOLS)
    yesterday = Benchmark(name="yesterday", tasks=tasks[:seen], **WORLD)
    await evaluate(yesterday, model=model, store=store, run="yesterday")
    block = json.dumps({"tool": "loan_rate", "rules": list(rules)})
    critic = ScriptedModel([f"<description>\n{block}\n</description>"] * 9, name="critic")
    held_out = Benchmark(name="held out", tasks=tasks[6:], **WORLD)
    found = await evolve(
        manager,
        [FeedbackStream(critic)],
        episodes=episodes_of_run(store, "yesterday"),
        compare=HeldOut(benchmark=held_out, model=model, store=store),
    )
    return manager, found


TERMS_JSON = {"kind": "one_of", "parameter": "periods", "values": [36, 48, 60]}


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "between", "parameter": "euro", "maximum": 0},
        {"kind": "requires", "parameter": "euro", "others": ["note"]},
        {"kind": "call_before", "tool": "wipe_notes"},
    ],
    ids=lambda rule: rule["kind"],
)
async def test_a_rule_that_refuses_accepted_calls_is_rejected(rule):
    """However much another rule beside it gains, the call that the tool took is named."""
    manager, found = await round_with(TERMS_JSON, rule)
    [one] = found.considered
    assert one.record.state == "rejected"
    assert [failed.code for failed in one.record.failed] == ["refuses_accepted_call"]
    assert "1 of 1 calls that the tool took" in one.why
    assert manager.library["loan_rate"].definition.specification.rules == ()


async def test_a_rule_that_refuses_gold_of_held_out_tasks_fails_the_comparison():
    """A gain elsewhere does not make up for a call that is right and would be refused."""
    manager, found = await round_with(
        TERMS_JSON, {"kind": "between", "parameter": "euro", "maximum": 23000}
    )
    [waits] = found.considered
    manager.approve(waits.record.proposal_id, person=ADA)  # stands in for the judge
    tasks = tuple(customer(at, 36, 36) for at in range(1, 25))
    model = FunctionModel(clerk, name="clerk")
    compare = HeldOut(
        benchmark=Benchmark(name="more", tasks=tasks, **WORLD),
        model=model,
        store=open_store("memory:"),
    )
    again = await evolve(manager, [], episodes=[], compare=compare)
    [one] = again.considered
    assert (one.record.state, one.report.decision) == ("rejected", "fail")
    assert one.why == "its rules refuse 1 gold calls, of c24"


def change(*rules, **fields):
    """A change of ``loan_rate`` that adds rules, as a model's unless said otherwise."""
    candidate = replace(LOAN, specification=replace(LOAN.specification, rules=rules))
    return ProposedChange(base=LOAN, candidate=candidate, library=Library(TOOLS), **fields)


@pytest.mark.parametrize(
    "rule",
    [
        Between(parameter="euro", maximum=0),
        Between(parameter="note", measure="length", minimum=100000),
        Requires(parameter="euro", others=("note",)),
        Form(parameter="note", format="uuid", example="123e4567-e89b-12d3-a456-426614174000"),
        OneOf(parameter="periods", values=(36, 48)),
    ],
    ids=str,
)
def test_a_rule_of_a_model_waits_unless_something_bears_it_out(rule):
    """Numbers lock a tool as well as words do; what was read off recorded calls needs nobody."""
    assert "judge" in validate(change(rule)).needs
    if not isinstance(rule, Form | OneOf):  # whose texts need an origin of their own
        assert validate(change(rule, from_evidence=True)).needs == ()


@pytest.mark.parametrize(
    "text", ["Term in months; one of 36, 48, 60.", "Term in months; never one of 36, 48, 60."]
)
def test_a_rule_of_a_model_waits_whatever_the_text_of_its_parameter_says(text):
    """A text that names the values may as well deny them."""
    words = replace(LOAN.description, parameters={**LOAN.description.parameters, "periods": text})
    told = replace(LOAN, description=words)
    candidate = replace(told, specification=replace(told.specification, rules=(TERMS,)))
    found = ProposedChange(base=told, candidate=candidate, library=Library([wipe_notes, told]))
    for author in ("model", "unknown"):
        assert validate(replace(found, written_by=author)).needs == ("judge",)
    assert validate(replace(found, written_by="unknown", from_evidence=True)).needs == ()


def test_an_order_of_calls_that_demands_an_undeclared_tool_needs_judge_and_person():
    """Nobody knows what such a tool does; one that only reads, or that calls showed, needs none."""
    wipe = CallBefore(tool="wipe_notes")
    assert validate(change(wipe)).needs == ("judge", "person")
    assert validate(change(wipe, written_by="unknown")).needs == ("judge", "person")
    assert validate(change(wipe, written_by="unknown", from_evidence=True)).needs == ()
    assert validate(change(CallBefore(tool="read_terms"))).needs == ("judge",)


def test_a_model_that_says_where_a_value_comes_from_waits():
    """Such a rule refuses every other value, and carries what the other tool reads into calls."""
    assert "judge" in validate(change(CallBefore(tool="read_terms", parameter="note"))).needs


def suggested(base, *rules, author=EVIDENCE, stream="evidence", **words):
    """A proposal to add rules, and words."""
    described = replace(base.description, **words)
    ruled = replace(base.specification, rules=(*base.specification.rules, *rules))
    candidate = replace(base, description=described, specification=ruled)
    return Proposal.of(base, candidate, stream=stream, author=author, reason="because")


@pytest.fixture
def after_rollback():
    """A manager whose ``loan_rate`` learned the terms, which a person took back."""
    manager = ToolManager(open_store("memory:"), tools=TOOLS)
    manager.register(TOOLS)
    record = manager.submit(suggested(LOAN, TERMS))
    manager.approve(record.proposal_id, person=ADA)
    manager.advance(record.proposal_id)
    manager.roll_back("loan_rate", author=ADA, reason="24 from tomorrow")
    return manager


@pytest.mark.parametrize(
    "rules",
    [
        (OneOf(parameter="periods", values=(60, 48, 36)),),
        (OneOf(parameter="periods", values=(36, 48, 60, 72)),),
        (OneOf(parameter="periods", values=(36, 48)),),
        (Between(parameter="periods", minimum=36, maximum=60, multiple_of=12),),
        (Condition(expression="periods == 36 or periods == 48", words="periods is 36 or 48"),),
        (TERMS, Between(parameter="euro", minimum=0)),
    ],
    ids=["another order", "more", "fewer", "a range", "a condition", "beside another rule"],
)
def test_what_was_taken_back_comes_back_by_a_person_alone(after_rollback, rules):
    """The same rule in other words, and another one about the same parameter, wait."""
    record = after_rollback.submit(suggested(LOAN, *rules))
    assert (record.state, "person" in record.awaits) == ("proposed", True)


@pytest.mark.parametrize(
    "summary", ["What a loan in euro, costs a month", "The LOAN in euro:  what it costs a month!"]
)
def test_a_text_that_was_rejected_comes_back_by_a_person_alone(after_rollback, summary):
    """Other signs, case, spaces and articles make no other text of it; other words do."""
    first = after_rollback.submit(
        suggested(LOAN, summary="What the loan in euro costs a month.", author=MODEL)
    )
    after_rollback.reject(first.proposal_id, person=ADA, reason="it says nothing new")
    again = after_rollback.submit(suggested(LOAN, summary=summary, author=MODEL))
    assert ("person" in again.awaits) == summary.startswith("What a loan")


class Suggests:
    """A proposer that suggests rules."""

    name = "feedback:again"

    def __init__(self, *rules):
        self._rules = rules

    async def propose(self, observations):
        return [suggested(LOAN, *self._rules, author=MODEL, stream="feedback")]


async def test_a_round_passes_over_what_was_taken_back(after_rollback):
    """The same rule from somebody else makes no second proposal; the round says why."""
    before = set(after_rollback.ledger.proposals)
    outcome = await evolve(after_rollback, [Suggests(TERMS)], episodes=[])
    assert set(after_rollback.ledger.proposals) == before
    assert [one.reason for one in outcome.passed_over] == ["already_proposed"]


BOTH = ("judge", "person")


def made(name, effects, *demands, children=()):
    """A tool whose rules demand others, and that may be made of others."""
    definition = ToolDefinition.from_schema(
        name, f"Tool {name}.", {"properties": {}}, effects=effects
    )
    specification = replace(
        definition.specification, rules=tuple(CallBefore(tool=one) for one in demands)
    )
    pins = tuple(ChildReference(name=one, digest="0") for one in children)
    signature = replace(definition.signature, children=pins)
    return replace(definition, specification=specification, signature=signature)


READS = Effects.of(["reads"])
SEND = made("send_email", Effects.of(["writes", "destructive"]))
SEARCH = made("search_inbox", READS)


def with_demand(definition, name):
    """The tool with a rule that another one is called first."""
    rules = (*definition.specification.rules, CallBefore(tool=name))
    return replace(definition, specification=replace(definition.specification, rules=rules))


@pytest.mark.parametrize(
    ("others", "demand"),
    [
        ([SEND], "send_email"),
        ([SEND, made("draft", READS, "send_email")], "draft"),
        ([SEND, made("draft", READS, "outline"), made("outline", READS, "send_email")], "draft"),
        ([SEND, made("draft", READS, children=["send_email"])], "draft"),
        ([made("loop", READS, "loop_too"), made("loop_too", READS, "loop", "gone")], "loop"),
        ([made("wire_money", Effects())], "wire_money"),
    ],
    ids=["directly", "through one", "through two", "in a composite", "unknown", "money"],
)
def test_a_demanded_tool_lends_its_effects(others, demand):
    """The strongest effects win, however many rules and programs lie between."""
    library = Library([SEARCH, *others])
    change = ProposedChange(base=SEARCH, candidate=with_demand(SEARCH, demand), library=library)
    assert validate(change).needs == BOTH


@pytest.fixture
def waiting():
    """A manager, and a proposal that makes a reading tool demand a destructive one."""
    manager = ToolManager(open_store("memory:"))
    manager.register([SEND, SEARCH])
    author = Author(kind="program", name="evidence")
    candidate = with_demand(SEARCH, "send_email")
    record = manager.submit(Proposal.of(SEARCH, candidate, stream="evidence", author=author))
    return manager, record


def test_the_proposal_waits_and_the_review_says_why(waiting, capsys):
    """Nobody is made to send an e-mail before a judge and a person agreed; the page names it."""
    manager, record = waiting
    assert (record.state, record.awaits) == ("proposed", BOTH)
    page = review_of(manager, record.proposal_id)
    assert page.demands == (
        "This would make models call send_email (destructive) before search_inbox.",
    )
    assert page.to_json()["demands"] == list(page.demands)
    print_review(page)
    assert f"What it demands\n  {page.demands[0]}" in capsys.readouterr().out


def test_a_tool_that_nobody_knows_counts_as_the_worst():
    """Without a library every demanded tool may do everything."""
    assert ValidationPolicy().needs_for(with_demand(SEARCH, "send_email")) == BOTH
    assert demanded(with_demand(SEARCH, "gone"), {}) == {"gone": None}


async def test_a_round_takes_in_what_brings_more_than_was_taken_back(after_rollback):
    """A rule that is new beside the old one makes a proposal, which a person must agree to."""
    outcome = await evolve(
        after_rollback, [Suggests(TERMS, Between(parameter="euro", minimum=0))], episodes=[]
    )
    assert [one.record.awaits[-1] for one in outcome.considered] == ["person"]
    assert outcome.passed_over == ()
