from .binding import composite_tool as composite_tool
from .checks import check_program as check_program
from .codec import (
    program_digest as program_digest,
)
from .codec import (
    program_from_json as program_from_json,
)
from .codec import (
    program_to_json as program_to_json,
)
from .contracts import (
    Conditions as Conditions,
)
from .contracts import (
    check_post as check_post,
)
from .contracts import (
    check_pre as check_pre,
)
from .expr import Expr as Expr
from .expressions import Expression as Expression
from .interpreter import (
    Composite as Composite,
)
from .interpreter import (
    TracedCall as TracedCall,
)
from .limits import (
    CONTRACT_LIMITS as CONTRACT_LIMITS,
)
from .limits import (
    READING_LIMITS as READING_LIMITS,
)
from .limits import (
    CompositeLimits as CompositeLimits,
)
from .parser import (
    ParsedSource as ParsedSource,
)
from .parser import (
    parse as parse,
)
from .parser import (
    parse_expression as parse_expression,
)
from .paths import shortest_path as shortest_path
from .problems import RUN_CODES as RUN_CODES
from .rule_checker import RuleChecker as RuleChecker
from .rule_validity import (
    RuleProblem as RuleProblem,
)
from .rule_validity import (
    rule_problems as rule_problems,
)
from .source import compose as compose
