from .canary import CanaryRouter as CanaryRouter
from .feedback import (
    UserFeedback as UserFeedback,
)
from .feedback import (
    feedback_on as feedback_on,
)
from .feedback import (
    keep_feedback as keep_feedback,
)
from .judging import (
    CanaryJudge as CanaryJudge,
)
from .judging import (
    judged as judged,
)
from .judging import (
    outcome as outcome,
)
from .pinned import PinRouter as PinRouter
from .shadow import (
    ShadowLimits as ShadowLimits,
)
from .shadow import (
    ShadowRunner as ShadowRunner,
)
from .watch import LedgerWatch as LedgerWatch
