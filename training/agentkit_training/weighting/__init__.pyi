from .weighting import (
    CLIP as CLIP,
    PAPER_UTILITIES as PAPER_UTILITIES,
    DynamicWeighting as DynamicWeighting,
    FixedWeighting as FixedWeighting,
    MeanNormalised as MeanNormalised,
    Weighting as Weighting,
    diagnostic_weight as diagnostic_weight,
    label_profile as label_profile,
    mean_weight as mean_weight,
    scaled_to_mean as scaled_to_mean,
    weighted_rollouts as weighted_rollouts,
)
