from .labelling import diagnose as diagnose
from .labels import (
    PRECEDENCE as PRECEDENCE,
    dominant as dominant,
)
from .profile import (
    FailureProfile as FailureProfile,
    FailureRate as FailureRate,
)
from .wording import (
    describe_failure as describe_failure,
    tells_failure as tells_failure,
)
