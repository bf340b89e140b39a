from .candidates import (
    ExampleRules as ExampleRules,
)
from .candidates import (
    MinedComposite as MinedComposite,
)
from .dataflow import (
    Dataflow as Dataflow,
)
from .dataflow import (
    FlowRules as FlowRules,
)
from .dataflow import (
    Route as Route,
)
from .dataflow import (
    RouteEvidence as RouteEvidence,
)
from .dataflow import (
    find_flows as find_flows,
)
from .dataflow import (
    trace_flows as trace_flows,
)
from .inserting import insert_mined as insert_mined
from .lifting import (
    Lifting as Lifting,
)
from .lifting import (
    LiftingRules as LiftingRules,
)
from .miner import (
    MiningResult as MiningResult,
)
from .miner import (
    MiningRules as MiningRules,
)
from .miner import (
    apply as apply,
)
from .miner import (
    mine as mine,
)
from .patterns import (
    Pattern as Pattern,
)
from .patterns import (
    PatternSearch as PatternSearch,
)
from .patterns import (
    SearchLimits as SearchLimits,
)
from .replaying import (
    Replay as Replay,
)
from .replaying import (
    replay as replay,
)
from .sources import (
    is_success as is_success,
)
from .sources import (
    trajectories_of as trajectories_of,
)
from .trajectory import (
    Flow as Flow,
)
from .trajectory import (
    Given as Given,
)
from .trajectory import (
    Step as Step,
)
from .trajectory import (
    Trajectory as Trajectory,
)
