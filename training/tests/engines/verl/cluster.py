"""A cluster in small: verl's own workers, queue and trainer on one CPU, with our loop in them.

Run by ``test_verl_contract.py`` in a process of its own, since Ray and verl change the process that
they are in. Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

MODULE = "agentkit_training.engines.verl.trainer"
os.environ |= {"VERL_USE_EXTERNAL_MODULES": MODULE, "OMP_NUM_THREADS": "1"}

import ray  # noqa: E402 - what is imported looks at the environment
import torch  # noqa: E402
import transfer_queue as tq  # noqa: E402
from hydra import compose, initialize_config_dir  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from tensordict import TensorDict  # noqa: E402
from transfer_queue import KVBatchMeta  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402
from verl.trainer.ppo.v1 import AgentLoopManagerTQ, get_trainer_cls  # noqa: E402
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn  # noqa: E402
from verl.workers.rollout.replica import TokenOutput  # noqa: E402

from agentkit import open_store  # noqa: E402
from agentkit.library import LibraryChange  # noqa: E402

SMALL = [
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    "actor_rollout_ref.rollout.agent.num_workers=1",
    "actor_rollout_ref.rollout.name=vllm",
    "trainer.logger=[]",
    "data.dataloader_num_workers=0",
]


class Server:
    """In the place of verl's servers: the tiny policy, in the worker's own process."""

    def __init__(self, weights: str) -> None:
        self.weights = weights

    async def generate(self, request_id, *, prompt_ids, sampling_params, **more):
        from agentkit_training import load_policy
        from agentkit_training.generation.decoding import Prompt, complete

        (one,) = complete(
            load_policy(self.weights, precision="fp32"),
            [
                Prompt(
                    ids=tuple(prompt_ids),
                    max_tokens=sampling_params["max_tokens"],
                    temperature=sampling_params["temperature"],
                    seed=int(request_id[:6], 16),
                )
            ],
        )
        steps = {"min_global_steps": 1, "max_global_steps": 1}
        return TokenOutput(
            token_ids=list(one.ids), log_probs=list(one.logprobs), extra_fields=steps
        )


def configuration(folder):
    """What ``verl.trainer.main_ppo`` would be given, made small."""
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("verl", overrides=SMALL)
    OmegaConf.resolve(config)
    config.transfer_queue.enable = True
    return config


def started(config):
    env = {"VERL_USE_EXTERNAL_MODULES": MODULE, "OMP_NUM_THREADS": "1"}
    ray.init(
        num_cpus=16,  # none of them computes for long
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": env},
    )
    tq.init(config.transfer_queue)


def rows_of(config, count):
    """The first rows as verl's data loader hands them out; one names a task that is not there."""
    tokenizer = AutoTokenizer.from_pretrained(config.actor_rollout_ref.model.path)
    data = RLHFDataset(list(config.data.train_files), tokenizer, config.data)
    rows = [data[number] for number in range(count)]
    rows[0]["extra_info"]["task_id"] = "gone"
    return collate_fn(rows)


def generated(manager, batch, partition="train"):
    """Have the workers make rollouts, and wait for all of them."""
    wanted = set(batch["uid"])
    manager.generate_sequences(batch)
    for _ in range(600):
        tags = tq.kv_list(partition_id=partition).get(partition, {})
        status = {key: tag.get("status") for key, tag in tags.items() if key in wanted}
        if len(status) == len(wanted) and set(status.values()) <= {"finished", "failure"}:
            mine = {key: tag for key, tag in tags.items() if key.split("_")[0] in wanted - {key}}
            return status, mine
        time.sleep(0.1)
    raise TimeoutError("the workers did not come to an end")


def fields(tags, *names):
    data = tq.kv_batch_get(keys=list(tags), partition_id="train", select_fields=list(names))
    return {name: data.get(name) for name in names}


def lists(nested):
    return [one.tolist() for one in nested.unbind()]


def pretend(tags):
    """What the actor and a lucky group would have put in the queue before advantages."""
    known = fields(tags, "rollout_log_probs", "rm_scores")
    scores = [one.clone() for one in known["rm_scores"].unbind()]
    for number, (key, score) in enumerate(zip(tags, scores, strict=True)):
        score[-1] = float(key.split("_")[1] == "0") * (1 + number)
    put = {
        "old_log_probs": known["rollout_log_probs"],
        "rm_scores": torch.nested.as_nested_tensor(scores, layout=torch.jagged),
    }
    tq.kv_batch_put(
        keys=list(tags), partition_id="train", fields=TensorDict(put, batch_size=len(scores))
    )


def advance(library):
    """The one writer commits another version while rollouts may be under way."""
    store = open_store(library)
    one = store.load().definitions[0]
    one = replace(one, description=replace(one.description, summary="New."))
    change = LibraryChange(upserts=(one,), proposal_id="again")
    newest = store.commit(change, expected_version=store.versions()[-1])
    store.close()
    return newest


def main(folder: Path, library: str) -> None:
    config = configuration(folder)
    started(config)
    kind = get_trainer_cls(config.trainer.v1.trainer_mode)
    trainer = kind(config=config)
    trainer.global_steps = 3
    plain = rows_of(config, config.data.train_batch_size)
    trainer.train_dataloader_it = iter([plain])
    manager = AgentLoopManagerTQ.create(
        config=config,
        llm_client=Server(config.actor_rollout_ref.model.path),
        teacher_client=None,
        reward_loop_worker_handles=None,
    )
    batch = trainer._next_train_batch()
    newest = advance(library)
    status, tags = generated(manager, batch)
    pretend(tags)
    keys = KVBatchMeta(partition_id="train", keys=list(tags), tags=list(tags.values()))
    super(kind, trainer)._compute_advantage(keys, {})
    before = lists(fields(tags, "advantages")["advantages"])
    metrics = {}
    trainer._compute_advantage(keys, metrics)
    found = fields(tags, "prompts", "responses", "response_mask", "advantages", "extra_fields")
    told = {
        "trainer": f"{kind.__module__}.{kind.__qualname__}",
        "mode": trainer.trainer_mode,
        "status": sorted(status.values()),
        "keys": list(tags),
        "prompts": lists(found["prompts"]),
        "responses": lists(found["responses"]),
        "masks": lists(found["response_mask"]),
        "notes": [getattr(one, "data", one) for one in found["extra_fields"].tolist()],
        "before": before,
        "after": lists(found["advantages"]),
        "metrics": metrics,
        "newest": newest,
    }
    print(json.dumps(told, default=float))
    tq.close()
    ray.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
