from .collecting import (
    GUIDELINES as GUIDELINES,
    LearningInterface as LearningInterface,
    Mode as Mode,
    collect_through as collect_through,
    guideline_text as guideline_text,
    prevalent_labels as prevalent_labels,
)
from .cues import (
    CueKinds as CueKinds,
    cued as cued,
    cued_library as cued_library,
)
from .feedback import (
    FeedbackModel as FeedbackModel,
    plain_error as plain_error,
)
