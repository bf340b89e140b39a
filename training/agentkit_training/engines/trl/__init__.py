"""TRL's ``GRPOTrainer`` as an engine: what it reads, what it is told, and what it tells back.

One method of the trainer is overridden (``_generate_and_score_completions``), rows come through
``rollout_func``, and a callback tells the source of each step. It holds from TRL 1.0.0 (with
transformers 4.56.2) on; a test runs against that release as well.

Where plain TRL would take other steps than the lean engine, and what is done about it:

* Advantages are worked out for groups of one fixed size; a fault counts as reward 0 (TRL 1.0) or is
  left out (newer). Ours are put in their place; for groups that TRL takes they are equal.
* Weight decay spares biases and norms. The optimiser is handed over, and decays all weights.
* The KL divergence is multiplied with the probability ratio, by default since some release after
  1.0. That is switched off.
* A step without any advantage lets momentum and decay move the weights. It changes nothing here.
* ``bnpo`` takes the mean over the tokens of each process, and of each part of a batch. It stays.
* The loss that is reported is rounded to four digits with transformers before 5.
"""
