"""JSON values as expressions."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit.composites import language as ir
from agentkit.composites.codec import literal_of, program_digest
from agentkit.composites.parser import parse
from agentkit.composites.problems import READING_LIMITS
from agentkit.errors import UsageError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400)])
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES)
def test_a_literal_is_what_the_parser_reads(value: object) -> None:
    """The expression of a value is the one of its text in Python, sign and kind included."""
    made = ir.Program(parameters=(), body=(ir.Return(value=literal_of(value)),))
    read = parse(f"def f(): return {value!r}", {}, limits=READING_LIMITS).program
    assert program_digest(made) == program_digest(read)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", 1j, object()])
def test_what_is_no_json_has_no_literal(value: object) -> None:
    """It is refused, not written as something else."""
    with pytest.raises(UsageError, match="only JSON values"):
        literal_of([value])
