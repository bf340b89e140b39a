"""verl, for clusters that already run it: tasks as its data, our agent as its agent loop.

verl owns the optimiser, the weights and their servers. What is ours is what a rollout is: the tasks
and their tools, the prompt from the current version of the library, the runtime's own agent, what
the rollout is worth. It holds for verl 0.9.1 and its trainer v1 (``trainer.use_v1``, the default).

* ``export_verl`` writes what verl is started with: parquet, a Hydra configuration, the file of
  agent loops, and our own settings. Nothing executable is written: verl imports this package.
* ``AgentkitLoop`` (``loop``) makes one rollout. verl's server writes the tokens.
* ``AgentkitTrainer`` (``trainer``) is verl's synchronous trainer with two methods overridden: a
  batch is told the newest version of the library, and advantages are multiplied with the
  diagnostic weights (SEAL, Eq. 12). verl has no hook for the latter: an estimator that is
  registered with it sees rewards, masks and group ids, and nothing else of a rollout.
* ``compute_score`` (``scoring``) is for a reward manager of verl's; the loop gives the reward
  itself, and verl asks for none then.

The library has one writer, the process with the Tool Manager, and it is none of verl's. Workers
read the store at ``VerlSettings.library``. Which version a step is asked with is decided once, by
the trainer, when it hands out the batch; versions never change, so that all workers have the same
tools however late they read. Co-evolution is driven from outside: with ``keeps_episodes`` the
workers put judged and diagnosed episodes of training tasks into the store, and any process with the
Tool Manager learns from these, such as ``agentkit evolve``. What it commits serves from the next
batch on. Not done here: verl's checkpoints hold no library, so note the version beside them (it is
in the metrics as ``agentkit/library_version``); weights that learn (``DynamicWeighting``) would
have no place there either.

``loop`` and ``trainer`` import verl, which can not be installed beside current transformers. The
other modules need it as little as the rest of this package.
"""
