from .combining import RewardSum as RewardSum
from .composites import (
    saved_calls as saved_calls,
    saved_calls_reward as saved_calls_reward,
)
from .formats import (
    FormatCheck as FormatCheck,
    format_asked_for as format_asked_for,
    is_readable as is_readable,
)
from .gates import (
    is_imperfect as is_imperfect,
    is_perfect as is_perfect,
    result_reward as result_reward,
)
from .reward import (
    Reward as Reward,
    Worth as Worth,
    rewarded as rewarded,
    verdict_reward as verdict_reward,
)
from .tooldna import (
    ToolDnaDesign as ToolDnaDesign,
    answer_metrics as answer_metrics,
    tooldna_reward as tooldna_reward,
)
