"""Whatever is handed in, in whatever order: the DAG stays a DAG, and what was true stays true."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from agentkit import open_store
from agentkit.evolution import Added, InsertPolicy, Merged, Rejected, ToolManager
from agentkit.library.dag import depth, find_cycle, flat_size
from agentkit.testing import primitive_library

NAMES = ("alpha", "beta", "gamma", "delta")
PRIMITIVES = ("add", "mul", "sub", "div")
TOOLS = tuple(tool for tool in primitive_library() if tool.name in {*PRIMITIVES, "absolute"})

candidates = st.builds(
    dict,
    name=st.sampled_from(NAMES),
    outer=st.sampled_from(PRIMITIVES),
    left=st.sampled_from((*NAMES, *PRIMITIVES)),
    right=st.sampled_from((*NAMES, *PRIMITIVES)),
    constant=st.integers(-1, 2),
    lie=st.booleans(),
)


def value(library, recipe):
    """What the candidate gives for 3 and 2, when its tools can tell."""
    try:
        parts = [library[recipe[side]](3, 2) if recipe[side] in PRIMITIVES else
                 library[recipe[side]](a=3, b=2) for side in ("left", "right")]  # fmt: skip
        return library[recipe["outer"]](parts[0], parts[1]) + recipe["constant"]
    except Exception:  # noqa: BLE001 - a missing tool or a division by zero: anything is expected
        return 0


def written(library, recipe):
    """The candidate's text, with an example that is right unless it lies."""
    expected = value(library, recipe) + (1 if recipe["lie"] else 0)
    return f'''
@composite(examples=[{{"arguments": {{"a": 3, "b": 2}}, "result": {expected!r}}}])
def {recipe["name"]}(a: float, b: float) -> float:
    """Computes {recipe["outer"]} of {recipe["left"]} and {recipe["right"]}."""
    return {recipe["outer"]}({recipe["left"]}(a, b), {recipe["right"]}(a, b)) + {recipe["constant"]}
'''


@settings(max_examples=25, deadline=None)
@given(st.lists(candidates, max_size=8), st.booleans())
def test_the_library_grows_monotonically_and_stays_a_dag(recipes, allow_revisions):
    """Acyclic, depth 1 + max(children), versions in step, and every worked call still holds.

    CoCoDA, corollary 5 (well-formedness) and the inclusion that theorem 4 rests on.
    """
    store = open_store("memory:")
    policy = InsertPolicy(allow_revisions=allow_revisions, probe_contracts=False)
    manager = ToolManager(store, tools=TOOLS, policy=policy)
    manager.register(TOOLS)
    for recipe in recipes:
        before, version = set(manager.library.tools), manager.library.version
        outcome = manager.insert(written(manager.library, recipe))
        library = manager.library
        assert find_cycle(library) is None
        assert before <= set(library.tools)
        changed = isinstance(outcome, Added) or (
            isinstance(outcome, Merged) and outcome.examples_moved
        )
        assert library.version == version + bool(changed)
        if isinstance(outcome, Rejected):
            assert set(library.tools) == before
    check_every_tool(manager.library)
    assert store.load().digest == manager.library.digest


def check_every_tool(library):
    """Depth, size, pins and worked calls of everything in the library."""
    for tool in library:
        children = [child.name for child in tool.definition.signature.children]
        deepest = max((depth(library, child) for child in children), default=-1)
        assert depth(library, tool.name) == 1 + deepest
        assert flat_size(library, tool.name) >= max(
            (flat_size(library, c) for c in children), default=1
        )
        for child in tool.definition.signature.children:
            assert library[child.name].definition.digest == child.digest
        for example in tool.definition.examples:
            assert abs(tool(**example.arguments) - example.result) < 1e-6
