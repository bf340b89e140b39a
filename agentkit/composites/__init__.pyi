from .annotations import Expr as Expr
from .codec import (
    called_in as called_in,
    program_from_json as program_from_json,
    program_of as program_of,
    program_to_json as program_to_json,
)
from .composite import (
    Composite as Composite,
    composite_tool as composite_tool,
)
from .contracts import (
    Conditions as Conditions,
    Expression as Expression,
    check_post as check_post,
    check_pre as check_pre,
)
from .dataflow import shortest_path as shortest_path
from .guards import TracedCall as TracedCall
from .parser import (
    ParsedSource as ParsedSource,
    parse as parse,
    parse_expression as parse_expression,
)
from .problems import (
    CONTRACT_LIMITS as CONTRACT_LIMITS,
    READING_LIMITS as READING_LIMITS,
    RUN_CODES as RUN_CODES,
    CompositeLimits as CompositeLimits,
)
from .rendering import render as render
from .rules import (
    RuleChecker as RuleChecker,
    RuleProblem as RuleProblem,
    rule_problems as rule_problems,
)
from .source import (
    compose as compose,
    join_effects as join_effects,
)
