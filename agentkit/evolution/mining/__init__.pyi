from .candidates import (
    ExampleRules as ExampleRules,
    MinedComposite as MinedComposite,
)
from .dataflow import (
    Dataflow as Dataflow,
    FlowRules as FlowRules,
    Route as Route,
    RouteEvidence as RouteEvidence,
    find_flows as find_flows,
    trace_flows as trace_flows,
)
from .inserting import insert_mined as insert_mined
from .lifting import (
    Lifting as Lifting,
    LiftingRules as LiftingRules,
)
from .miner import (
    MiningResult as MiningResult,
    MiningRules as MiningRules,
    apply as apply,
    mine as mine,
)
from .patterns import (
    Pattern as Pattern,
    PatternSearch as PatternSearch,
    SearchLimits as SearchLimits,
)
from .replaying import (
    Replay as Replay,
    replay as replay,
)
from .sources import (
    is_success as is_success,
    trajectories_of as trajectories_of,
)
from .trajectory import (
    Flow as Flow,
    Given as Given,
    Step as Step,
    Trajectory as Trajectory,
)
