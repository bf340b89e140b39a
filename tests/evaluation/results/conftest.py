"""Episodes of an evaluation, made through the real records."""

import json
import random
from dataclasses import dataclass, field

import pytest

from agentkit.episodes import Diagnosis, Episode, Evidence, Turn, TurnDiagnosis, Verdict
from agentkit.messages import AssistantMessage, ToolCall, ToolResult, Usage

CATEGORIES = {"simple_python": 0.82, "parallel_multiple": 0.33, "irrelevance": 0.4}
TOOLS = {
    "weather.forecast": {"city": "Oslo", "days": 3, "unit": "celsius"},
    "calendar.create_event": {"title": "Meeting", "attendees": ["Ana", "伊藤さん"]},
    "music.play": {"track": "Spiegel im Spiegel", "artist": "Arvo Pärt"},
}
REQUEST = "What will the weather be like in Oslo for the next three days?"
FAILURES = (
    ("argument_mismatch", "wrong_value"),
    ("argument_mismatch", "missing_argument"),
    ("invalid_tool_call", "malformed_arguments"),
    ("missing_tool_call", "wrong_tool"),
    ("spurious_tool_call", "unexpected_call"),
)


@dataclass
class Maker:
    """Makes the episodes of one run from a seed."""

    run: str = "smoke"
    benchmark: str = "BFCL v4, single turn"
    model: str = "small-135m"
    seed: int = 0
    settings: dict = field(default_factory=lambda: {"refine": "adaptive", "tools": "given"})
    _made: int = 0

    def __post_init__(self):
        self._random = random.Random(self.seed)

    def new_id(self):
        """Ids that sort by time, as real ones do."""
        self._made += 1
        return f"{self.run}-{self._made:08d}"

    def labels(self, task, category, *, attempt=0, user_turn=0, user_turns=1, ends=True):
        """The labels that every evaluation episode carries."""
        labels = {
            "run": self.run,
            "benchmark": self.benchmark,
            "task": task,
            "category": category,
            "attempt": str(attempt),
            "user_turn": str(user_turn),
            "user_turns": str(user_turns),
            "settings": json.dumps(
                {"benchmark": self.benchmark, "model": self.model, **self.settings}, sort_keys=True
            ),
        }
        return labels | ({"ends": "true"} if ends else {})

    def episode(
        self,
        task="t-1",
        category="simple_python",
        *,
        passed=True,
        failure=("argument_mismatch", "wrong_value"),
        session=None,
        fault=None,
        judged=True,
        tool="weather.forecast",
        request=REQUEST,
        **labels,
    ):
        """One episode of one turn with one call."""
        rng = self._random
        label, kind = ("pass", "") if passed else failure
        call, parameter = self._call(tool, kind)
        evidence = () if passed else self._evidence(kind, call, parameter)
        turn = self._turn(call)
        verdict = Verdict(
            passed=passed,
            score=1.0 if passed else rng.choice((0.0, 0.25, 0.5)),
            evidence=evidence,
            verifier="allowed values",
            fault=fault,
            metrics={"tool_name": float(passed or rng.random() < 0.6)},
        )
        label = fault or label
        turn_diagnosis = TurnDiagnosis(
            turn=0,
            label=label,
            labels=(label,),
            tool="" if passed else tool,
            parameter=parameter,
            evidence=evidence,
            hint="" if passed else f"read what {tool} says about {parameter or 'itself'}",
        )
        return Episode(
            episode_id=self.new_id(),
            session_id=session or f"{task}/{labels.get('attempt', 0)}",
            request=request,
            turns=(turn,),
            stop_reason="deferred",
            model=self.model,
            library_version=7,
            usage=turn.usage,
            started_at=f"2026-11-21T10:{self._made % 60:02d}:00+00:00",
            seconds=turn.seconds + 0.002,
            verdict=verdict if judged else None,
            diagnosis=Diagnosis(label=label, turns=(turn_diagnosis,)),
            metadata=self.labels(task, category, **labels),
        )

    def _call(self, tool, kind):
        arguments = dict(TOOLS.get(tool, {"value": 1}))
        parameter = self._random.choice(sorted(arguments))
        if kind == "wrong_value":
            arguments[parameter] = self._random.choice((0, "", "unknown", [], "Paris, France"))
        elif kind == "missing_argument":
            del arguments[parameter]
        malformed = '{"value": 1' if kind == "malformed_arguments" else None
        call = ToolCall(call_id="c1", name=tool, arguments=arguments, malformed=malformed)
        return call, parameter if kind in {"wrong_value", "missing_argument"} else ""

    def _evidence(self, kind, call, parameter):
        expected, actual = None, None
        message = f"{call.name}: {kind.replace('_', ' ')}"
        if parameter:
            expected = [TOOLS.get(call.name, {}).get(parameter)]
            actual = call.arguments.get(parameter)
            message = f"{call.name}: argument {parameter!r}: {kind.replace('_', ' ')}"
        elif kind == "wrong_tool":
            expected, actual = [self._random.choice(sorted(TOOLS))], call.name
            message = f"{call.name} was called instead of {expected[0]}"
        return (
            Evidence(
                kind=kind,
                message=message,
                turn=0,
                call_id="c1",
                tool=call.name,
                parameter=parameter,
                expected=expected,
                actual=actual,
            ),
        )

    def _turn(self, call):
        return Turn(
            message=AssistantMessage(tool_calls=(call,)),
            results=(ToolResult(call_id=call.call_id, name=call.name, status="deferred"),),
            usage=Usage(
                requests=2, prompt_tokens=800, cached_tokens=400, completion_tokens=self._made
            ),
            seconds=0.7,
            model_seconds=0.697,
        )

    def run_of(self, *, tasks=20, attempts=1, faulty=0.0):
        """The episodes of a whole run."""
        rng = self._random
        for category, ease in CATEGORIES.items():
            for number in range(tasks):
                for attempt in range(attempts):
                    yield self.episode(
                        f"{category}_{number}",
                        category,
                        passed=rng.random() < ease,
                        failure=rng.choice(FAILURES),
                        fault="gold_error" if rng.random() < faulty else None,
                        tool=list(TOOLS)[number % len(TOOLS)],
                        attempt=attempt,
                    )


@pytest.fixture
def maker():
    """Makes the episodes of one run."""
    return Maker()


@pytest.fixture
def make():
    """Makes makers, for tests about several runs."""
    return Maker


@pytest.fixture(scope="session")
def make_once():
    """The same, for properties that are tried on many examples."""
    return Maker
