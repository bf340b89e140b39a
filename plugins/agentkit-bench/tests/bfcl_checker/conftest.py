"""Our verdict on calls, and the public checker's where its package is there."""

import importlib
import importlib.util
import os
from pathlib import Path

import pytest

from agentkit.episodes import Episode, Turn
from agentkit.evaluation import AllowedCalls
from agentkit.evaluation.verifiers import Scene, verifier_for
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.metrics import AllowedCall
from agentkit.tools import definition_from_json
from agentkit_bench import JAVA, JAVASCRIPT

LANGUAGES = {"simple_java": JAVA, "simple_javascript": JAVASCRIPT}
HINT = (
    "bfcl_eval is not there; pip install --no-deps --target FOLDER bfcl_eval==2026.3.23, and name "
    "the folder in AGENTKIT_BFCL_EVAL"
)


@pytest.fixture
def verdict():
    """Our verdict on the calls of a case, by the verifier that evaluations use."""

    async def judged(case):
        expected = AllowedCalls(
            calls=tuple(
                AllowedCall(name=name, allowed=allowed)
                for call in case.gold
                for name, allowed in call.items()
            ),
            language=LANGUAGES.get(case.category),
        )
        calls = tuple(
            ToolCall(call_id=str(at), name=name, arguments=arguments)
            for at, (name, arguments) in enumerate(case.calls)
        )
        turn = Turn(message=AssistantMessage(tool_calls=calls))
        tools = tuple(definition_from_json(function) for function in case.functions)
        verifier = verifier_for(expected, Scene(definitions=tools))
        return await verifier.verify(Episode(episode_id="1", request="?", turns=(turn,)))

    return judged


@pytest.fixture(scope="module")
def package_folder():
    """The folder that the package lies in."""
    named = os.environ.get("AGENTKIT_BFCL_EVAL")
    if named:
        return Path(named)
    spec = importlib.util.find_spec("bfcl_eval")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        pytest.skip(HINT)
    return Path(places[0]).parent


@pytest.fixture(scope="module")
def comparison(agreement, package_folder):
    """Both checkers over the package's questions."""
    return agreement.Comparison(package_folder)


@pytest.fixture(scope="module")
def upstream_verdict(agreement, package_folder):
    """The public checker's verdict on the calls of a case."""
    upstream = agreement.Upstream(package_folder)

    def judged(case):
        question = agreement.Question(
            task_id="case", category=case.category, function=case.functions, gold=case.gold
        )
        texts = case.calls if case.source is None else case.source
        return upstream.judge(question, [{name: given} for name, given in texts]).valid

    return judged
