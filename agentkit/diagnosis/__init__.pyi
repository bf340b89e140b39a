from .labelling import (
    diagnose as diagnose,
)
from .labelling import (
    diagnose_conversation as diagnose_conversation,
)
from .labels import (
    PRECEDENCE as PRECEDENCE,
)
from .labels import (
    dominant as dominant,
)
from .labels import (
    label_distribution as label_distribution,
)
from .profile import (
    FailureProfile as FailureProfile,
)
from .profile import (
    FailureRate as FailureRate,
)
from .profile import (
    PositionLabels as PositionLabels,
)
from .wording import describe_failure as describe_failure
