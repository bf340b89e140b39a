from .composite import (
    Composite as Composite,
    called_in as called_in,
    composite_tool as composite_tool,
    join_effects as join_effects,
    program_from_json as program_from_json,
    program_of as program_of,
    program_to_json as program_to_json,
)
from .contracts import (
    Conditions as Conditions,
    Expression as Expression,
    RuleChecker as RuleChecker,
    RuleProblem as RuleProblem,
    check_post as check_post,
    check_pre as check_pre,
    rule_problems as rule_problems,
)
from .language import (
    render as render,
    shortest_path as shortest_path,
)
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
from .source import compose as compose
from .type_check import Expr as Expr
