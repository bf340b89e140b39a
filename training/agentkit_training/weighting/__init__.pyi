from .dynamic import DynamicWeighting as DynamicWeighting
from .fixed import FixedWeighting as FixedWeighting
from .normalised import (
    MeanNormalised as MeanNormalised,
)
from .normalised import (
    scaled_to_mean as scaled_to_mean,
)
from .protocol import (
    Weighting as Weighting,
)
from .protocol import (
    mean_weight as mean_weight,
)
from .protocol import (
    weighted_rollouts as weighted_rollouts,
)
from .utilities import (
    CLIP as CLIP,
)
from .utilities import (
    PAPER_UTILITIES as PAPER_UTILITIES,
)
from .utilities import (
    diagnostic_weight as diagnostic_weight,
)
from .utilities import (
    label_profile as label_profile,
)
