"""verl, for clusters that already run it: tasks as its data, our agent as its agent loop.

verl owns the optimiser, the weights and their servers. What is ours is what a rollout is: tasks and
tools, the prompt, the runtime's own agent, what the rollout is worth. It is written for verl 0.9.1.

* ``export_verl`` writes what verl is started with: rows as parquet, a Hydra configuration, the file
  of agent loops, and the configuration of the run. Nothing executable is written.
* ``AgentkitLoop`` (``loop``) makes one rollout; verl's server writes the tokens. The module imports
  verl, which can not be installed beside current transformers.

The library stays as it is while verl trains: take an evolved one as an artifact (``library``).
"""
