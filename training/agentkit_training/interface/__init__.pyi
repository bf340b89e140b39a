from .collecting import collect_through as collect_through
from .cues import (
    CueKinds as CueKinds,
)
from .cues import (
    cued as cued,
)
from .cues import (
    cued_library as cued_library,
)
from .feedback import (
    FeedbackModel as FeedbackModel,
)
from .feedback import (
    plain_error as plain_error,
)
from .guidelines import (
    GUIDELINES as GUIDELINES,
)
from .guidelines import (
    guideline_text as guideline_text,
)
from .guidelines import (
    prevalent_labels as prevalent_labels,
)
from .learning_interface import (
    LearningInterface as LearningInterface,
)
from .learning_interface import (
    Mode as Mode,
)
