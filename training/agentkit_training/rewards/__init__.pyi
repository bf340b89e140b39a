from .combining import RewardSum as RewardSum
from .composites import (
    saved_calls as saved_calls,
)
from .composites import (
    saved_calls_reward as saved_calls_reward,
)
from .formats import (
    FormatCheck as FormatCheck,
)
from .formats import (
    format_asked_for as format_asked_for,
)
from .formats import (
    is_readable as is_readable,
)
from .gates import (
    is_imperfect as is_imperfect,
)
from .gates import (
    is_perfect as is_perfect,
)
from .gates import (
    result_reward as result_reward,
)
from .reward import (
    Reward as Reward,
)
from .reward import (
    Worth as Worth,
)
from .reward import (
    rewarded as rewarded,
)
from .reward import (
    verdict_reward as verdict_reward,
)
from .tooldna import (
    ToolDnaDesign as ToolDnaDesign,
)
from .tooldna import (
    answer_metrics as answer_metrics,
)
from .tooldna import (
    tooldna_reward as tooldna_reward,
)
