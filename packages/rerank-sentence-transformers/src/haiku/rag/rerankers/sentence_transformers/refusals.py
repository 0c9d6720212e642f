"""What the hub's client raises, as a sentence that names no address and no key."""

from haiku.rag.rerankers.sentence_transformers.library import library

ACCESS = "Set reranking.model.api_key, or the environment variable HF_TOKEN, to a token that may read it."


def cause_of(error: BaseException) -> BaseException:
    """The error that the client's own ones about missing files come from."""
    errors = library("huggingface_hub.errors")
    while isinstance(error, errors.LocalEntryNotFoundError | errors.DryRunError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def is_away(error: BaseException) -> bool:
    """Whether it says that the hub cannot be asked, so that what is on this disk has to serve."""
    errors, http = library("huggingface_hub.errors"), library("httpx2")
    return isinstance(cause_of(error), errors.OfflineModeIsEnabled | http.TransportError)


def reason_of(error: BaseException, revision: str) -> str:
    """Why a model could not be fetched, and what to do about it."""
    errors, http = library("huggingface_hub.errors"), library("httpx2")
    cause = cause_of(error)
    name = type(cause).__name__
    known = (
        (errors.OfflineModeIsEnabled, "HF_HUB_OFFLINE is set. Unset it and try again."),
        (errors.GatedRepoError, f"its authors grant access to those who ask on its page. {ACCESS}"),
        (
            errors.RepositoryNotFoundError,
            f"the hub has no such model, or keeps it private. Check reranking.model.name. {ACCESS}",
        ),
        (
            errors.RevisionNotFoundError,
            f"it has no revision '{revision}'. Check rerank_sentence_transformers.revision.",
        ),
        (
            errors.HFValidationError,
            "the hub has no models of such names, and there is no folder of it. Check reranking.model.name.",
        ),
        (http.TransportError, f"the hub cannot be reached, or the connection broke ({name}). Try again later."),
    )
    for kind, sentence in known:
        if isinstance(cause, kind):
            return sentence
    if isinstance(cause, errors.HfHubHTTPError):
        return f"the hub answered with status {cause.response.status_code}. Try again later."
    return f"{cause.strerror}." if isinstance(cause, OSError) and cause.strerror else f"{name}. Try again."
