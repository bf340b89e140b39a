from .collecting import collect_through as collect_through
from .cues import (
    CueKinds as CueKinds,
    cued as cued,
    cued_library as cued_library,
)
from .feedback import (
    FeedbackModel as FeedbackModel,
    plain_error as plain_error,
)
from .guidelines import (
    GUIDELINES as GUIDELINES,
    guideline_text as guideline_text,
    prevalent_labels as prevalent_labels,
)
from .learning_interface import (
    LearningInterface as LearningInterface,
    Mode as Mode,
)
