from .fields import FieldKind as FieldKind, field_kind as field_kind, texts_agree as texts_agree
from .gates import (
    is_imperfect as is_imperfect,
    is_perfect as is_perfect,
    result_reward as result_reward,
    saved_calls as saved_calls,
    saved_calls_reward as saved_calls_reward,
)
from .reward import (
    Reward as Reward,
    RewardSum as RewardSum,
    Worth as Worth,
    rewarded as rewarded,
    verdict_reward as verdict_reward,
)
from .tooldna import (
    FormatCheck as FormatCheck,
    ToolDnaDesign as ToolDnaDesign,
    answer_metrics as answer_metrics,
    format_asked_for as format_asked_for,
    is_readable as is_readable,
    reward_parts as reward_parts,
    tooldna_reward as tooldna_reward,
)
from .tooldna_metrics import (
    ToolDnaMetrics as ToolDnaMetrics,
    tooldna_metrics as tooldna_metrics,
)
