"""Training for agentkit: co-evolution of a policy, its tools' texts and their library.

=================  ===============================================================================
``tasks/``         1. what is tried: tasks, split without leakage
``policy/``        2. the model that learns: weights, adapters, templates
``generation/``    3. writing many answers at once
``rollout/``       4. attempts through the runtime's own agent, token for token
``rewards/``       5. what they are worth; ``weighting/`` how much they count
``interface/``     what training prompts have more than evaluation's
``engines/``       6. how the policy learns: lean, TRL; ``distributed/`` several processes
``fine_tuning/``   fine-tuning; ``difficulty``, ``selection``, ``refine_samples``, ``toolace/``
``coevolution/``   7. the library learns beside the policy
``export/``        8. out of training, into the runtime
``config/``        what a run is asked for; ``jobs/`` whole runs; ``runs/`` their folders
``plan/``          what a run needs; ``report/`` its curves; ``cli/`` the commands
=================  ===============================================================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
