from .reward import (
    Reward as Reward,
    RewardSum as RewardSum,
    ToolDnaDesign as ToolDnaDesign,
    Worth as Worth,
    answer_metrics as answer_metrics,
    gold_calls as gold_calls,
    is_readable as is_readable,
    reward_parts as reward_parts,
    rewarded as rewarded,
    saved_calls as saved_calls,
    saved_calls_reward as saved_calls_reward,
    tooldna_reward as tooldna_reward,
    verdict_reward as verdict_reward,
)
from .tooldna_metrics import (
    FieldKind as FieldKind,
    ToolDnaMetrics as ToolDnaMetrics,
    field_kind as field_kind,
    texts_agree as texts_agree,
    tooldna_metrics as tooldna_metrics,
)
