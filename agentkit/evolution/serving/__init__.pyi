from .canary import CanaryRouter as CanaryRouter
from .feedback import (
    UserFeedback as UserFeedback,
    feedback_on as feedback_on,
    keep_feedback as keep_feedback,
)
from .judging import (
    CanaryJudge as CanaryJudge,
    judged as judged,
    outcome as outcome,
)
from .pinned import PinRouter as PinRouter
from .shadow import (
    ShadowLimits as ShadowLimits,
    ShadowRunner as ShadowRunner,
)
from .watch import LedgerWatch as LedgerWatch
