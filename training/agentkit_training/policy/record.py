"""What a saved policy says of itself beside the files of transformers.

Releases of transformers have given a reloaded tokenizer another end of text than the saved one had.
So end tokens and special tokens are written down here and hold when the folder is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

RECORD = "agentkit_policy.json"
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


class PolicyRecord(BaseModel):
    """The file ``agentkit_policy.json``.

    Attributes:
        format: Of this file.
        name: The policy's name.
        end_ids: The tokens that end an answer.
        special_tokens: The tokenizer's special tokens, by their name in transformers.
        base: For an adapter, the digest of the weights that it was trained over.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    format: Literal[1] = 1
    name: str
    end_ids: tuple[int, ...] = Field(min_length=1)
    special_tokens: dict[str, str] = {}
    base: str = ""


def write_record(policy: Policy, folder: Path, *, base: str = "") -> None:
    """Write down what ``policy`` is, into ``folder``."""
    record = PolicyRecord(
        name=policy.name,
        end_ids=tuple(sorted(policy.end_ids)),
        special_tokens=special_tokens(policy.tokenizer),
        base=base,
    )
    (folder / RECORD).write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_record(folder: Path) -> PolicyRecord | None:
    """What ``write_record`` wrote; None when the folder is from elsewhere.

    Raises:
        PolicyError: The file is damaged, or written by a newer release.
    """
    file = folder / RECORD
    if not file.is_file():
        return None
    try:
        return PolicyRecord.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise PolicyError(
            f"{file} can not be read: {error}. It is damaged, or a newer agentkit-training wrote "
            "it; save the policy again, or delete the file to go by the tokenizer alone"
        ) from error


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, str]:
    """The special tokens that a tokenizer has, by name."""
    found = {name: getattr(tokenizer, name, None) for name in SPECIAL_TOKENS}
    return {name: str(token) for name, token in found.items() if token is not None}
