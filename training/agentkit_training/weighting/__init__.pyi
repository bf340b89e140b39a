from .dynamic import DynamicWeighting as DynamicWeighting
from .fixed import FixedWeighting as FixedWeighting
from .normalised import (
    MeanNormalised as MeanNormalised,
    scaled_to_mean as scaled_to_mean,
)
from .protocol import (
    Weighting as Weighting,
    mean_weight as mean_weight,
    weighted_rollouts as weighted_rollouts,
)
from .utilities import (
    CLIP as CLIP,
    PAPER_UTILITIES as PAPER_UTILITIES,
    diagnostic_weight as diagnostic_weight,
    label_profile as label_profile,
)
