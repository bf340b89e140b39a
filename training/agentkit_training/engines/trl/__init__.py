"""TRL's ``GRPOTrainer`` as an engine: what it reads, what it is told, and what it tells back.

One method of the trainer is overridden (``_generate_and_score_completions``), and two hand over our
optimiser and schedule. Rows come through
``rollout_func``, and a callback tells the source of each step. It holds from TRL 1.0.0 (with
transformers 4.56.2) on; a test runs against that release as well.

Where plain TRL would take other steps than the lean engine, and what is done about it:

* Advantages are worked out for groups of one fixed size; a fault counts as reward 0 (TRL 1.0) or is
  left out (newer). Ours are put in their place; for groups that TRL takes they are equal.
* Weight decay spares biases and norms. The optimiser is handed over, and decays all weights.
* The KL divergence is multiplied with the probability ratio, by default since some release after
  1.0. That is switched off.
* A step without any advantage lets momentum and decay move the weights. It changes nothing here.
* ``grpo`` and ``dr_grpo`` count rows, empty ones and the several of one rollout too, and ``bnpo``
  takes the mean over each process, and each part of a batch, by itself. TRL is told ``dapo``, and
  tokens bear their shares as a mask. So its figures are means as the loss takes them.
* The loss that is reported is rounded to four digits with transformers before 5.
"""
