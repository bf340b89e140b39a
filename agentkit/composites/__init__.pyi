from .binding import composite_tool as composite_tool
from .checks import check_program as check_program
from .codec import (
    program_digest as program_digest,
    program_from_json as program_from_json,
    program_to_json as program_to_json,
)
from .contracts import (
    Conditions as Conditions,
    check_post as check_post,
    check_pre as check_pre,
)
from .expr import Expr as Expr
from .expressions import Expression as Expression
from .interpreter import (
    Composite as Composite,
    TracedCall as TracedCall,
)
from .limits import (
    CONTRACT_LIMITS as CONTRACT_LIMITS,
    READING_LIMITS as READING_LIMITS,
    CompositeLimits as CompositeLimits,
)
from .parser import (
    ParsedSource as ParsedSource,
    parse as parse,
    parse_expression as parse_expression,
)
from .paths import shortest_path as shortest_path
from .problems import RUN_CODES as RUN_CODES
from .rule_checker import RuleChecker as RuleChecker
from .rule_validity import (
    RuleProblem as RuleProblem,
    rule_problems as rule_problems,
)
from .source import compose as compose
