"""The three rejected candidates that CoCoDA describes (appendix H.3), as we decide them."""

from __future__ import annotations

from agentkit.evolution import Added, InsertPolicy, Merged, Rejected

SAFE_DIV = '''
@composite(
    post=["is_close(result * b, a)"],
    examples=[{"arguments": {"a": 6, "b": 3}, "result": 2}],
)
def safe_div(a: float, b: float) -> float:
    """Divide a by b, for any b."""
    return mul(div(a, b), 1)
'''

SUM_WHERE = '''
@composite(
    tags=["tabular", "aggregation"],
    pre=["all(column in row for row in rows)"],
    examples=[
        {
            "arguments": {
                "rows": [{"region": "EU", "amount": 120}, {"region": "US", "amount": 80}],
                "column": "amount",
                "predicate": 'row["region"] == "EU"',
            },
            "result": 120,
        }
    ],
)
def sum_where(
    rows: list[dict[str, Any]], column: str, predicate: Expr["row -> bool"]
) -> float:
    """Sum a numeric column over rows satisfying a predicate."""
    return sum_list(select_column(filter_rows(rows, predicate), column))
'''

COLUMN_SUM_IF = '''
@composite(
    pre=["all(values_of in row for row in table)"],
    examples=[
        {
            "arguments": {
                "condition": 'row["price"] > 2',
                "table": [{"price": 3}, {"price": 1}, {"price": 4}],
                "values_of": "price",
            },
            "result": 7,
        },
        {
            "arguments": {
                "condition": 'row["price"] > 9',
                "table": [{"price": 3}, {"price": 1}],
                "values_of": "price",
            },
            "result": 0,
        },
    ],
)
def column_sum_if(
    condition: Expr["row -> bool"], table: list[dict[str, Any]], values_of: str
) -> float:
    """Sum of a column over the rows for which a condition holds."""
    kept = filter_rows(table, condition)
    total = 0
    for value in select_column(kept, values_of):
        total = add(total, value)
    return total
'''

MEMOIZE = '''
@composite(examples=[{"arguments": {"n": 4}, "result": 24}])
def memoize_factorial(n: int) -> float:
    """Factorial of a number, step by step."""
    product = 1
    for k in range(1, n + 1):
        product = mul(product, k)
    return product
'''

FACT_REC = '''
@composite(pre=["n >= 1"], examples=[{"arguments": {"n": 4}, "result": 24}])
def fact_rec(n: int) -> float:
    """Factorial of a number by the factorial of the one before it."""
    return mul(n, memoize_factorial(n - 1))
'''

MEMOIZE_AGAIN = '''
@composite(examples=[{"arguments": {"n": 4}, "result": 24}])
def memoize_factorial(n: int) -> float:
    """Factorial of a number, remembered."""
    return 1 if n < 1 else fact_rec(n)
'''


def test_safe_div_breaks_the_contract_of_div(manager):
    """Its one example avoids zero; a generated call finds the one that div does not allow."""
    outcome = manager.insert(SAFE_DIV)
    assert isinstance(outcome, Rejected)
    assert outcome.code == "child_precondition"
    assert (outcome.witness.tool, outcome.witness.condition) == ("div", "b != 0")
    assert outcome.witness.arguments["b"] == 0


def test_memoize_factorial_would_close_a_cycle(make_manager):
    """A revision that calls what is made of the tool is rejected with the circle spelled out."""
    manager = make_manager(policy=InsertPolicy(allow_revisions=True, description_similarity=1))
    assert isinstance(manager.insert(MEMOIZE), Added)
    assert isinstance(manager.insert(FACT_REC), Added)
    before = manager.library.digest
    outcome = manager.insert(MEMOIZE_AGAIN)
    assert isinstance(outcome, Rejected)
    assert outcome.code == "cycle"
    assert "'fact_rec'" in outcome.explanation
    assert "'memoize_factorial'" in outcome.explanation
    assert manager.library.digest == before


def test_memoize_factorial_in_one_text_is_recursion(manager):
    """Written as one function it calls itself, which the language does not have."""
    recursive = MEMOIZE_AGAIN.replace("fact_rec(n)", "mul(n, memoize_factorial(n - 1))")
    outcome = manager.insert(recursive)
    assert isinstance(outcome, Rejected)
    assert outcome.code == "cycle"
    assert outcome.problems[0].code == "recursive_call"


def test_column_sum_if_is_merged_into_sum_where(manager, store):
    """Another program under other parameter names does the same; its examples move over."""
    assert isinstance(manager.insert(SUM_WHERE), Added)
    outcome = manager.insert(COLUMN_SUM_IF, evidence=["wtq-7"])
    assert isinstance(outcome, Merged)
    assert (outcome.into, outcome.examples_moved) == ("sum_where", 2)
    assert outcome.parameters == {
        "table": "rows",
        "values_of": "column",
        "condition": "predicate",
    }
    held = store.load()
    assert "column_sum_if" not in held
    examples = held["sum_where"].definition.examples
    assert [example.result for example in examples] == [120, 7, 0]
    assert examples[1].arguments["predicate"] == 'row["price"] > 2'
    assert store.history("sum_where")[-1].evidence == ("wtq-7",)
