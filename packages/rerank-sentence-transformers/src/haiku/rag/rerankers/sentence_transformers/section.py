"""The section `rerank_sentence_transformers`."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from haiku.rag.config import Section
from haiku.rag.config.section import NonBlank

ELSEWHERE = {
    "dtype": "dtype",
    "torch_dtype": "dtype",
    "revision": "revision",
    "trust_remote_code": "trust_remote_code",
    "local_files_only": "offline",
    "token": "reranking.model.api_key",
    "cache_dir": "the environment variable HF_HUB_CACHE",
}
"""Arguments of a model's loading that are set in another place."""


def _own_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    for name in arguments:
        if name in ELSEWHERE:
            raise PydanticCustomError(
                "elsewhere", "'{name}' is not given here, but by: {place}", {"name": name, "place": ELSEWHERE[name]}
            )
    return arguments


class CrossEncoderSection(Section):
    """How the model is loaded and run.

    `device` is `cpu`, `cuda`, `cuda:1`, `mps`, or `auto` for the best that is there. `batch_size` is how many passages
    are scored at once; `max_length` the longest pair of query and passage in tokens, never more than the model reads.
    `model_kwargs` go to `from_pretrained` of the model's class. With `offline` searching fetches nothing. `activation`
    is what is done with the model's number: `sigmoid` makes it a score from 0 to 1, `none` leaves it as it is.
    """

    device: NonBlank = "cpu"
    batch_size: Annotated[int, Field(gt=0)] = 8
    max_length: Annotated[int, Field(gt=0)] | None = None
    dtype: Literal["float32", "bfloat16", "float16", "auto"] = "float32"
    model_kwargs: Annotated[dict[str, Any], AfterValidator(_own_arguments)] = Field(default_factory=dict, repr=False)
    trust_remote_code: bool = False
    revision: NonBlank | None = None
    offline: bool = False
    activation: Literal["sigmoid", "none"] = "sigmoid"
