"""What every section of the configuration is made of."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from haiku.rag.plugins.messages import suggestion


def not_blank(value: str) -> str:
    """The value, unless it is empty, only spaces, or holds a control character."""
    if not value.strip():
        raise PydanticCustomError("blank", "must not be blank")
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise PydanticCustomError("control_character", "must not hold control characters")
    return value


NonBlank = Annotated[str, AfterValidator(not_blank)]


class Section(BaseModel):
    """A section: unknown keys are refused with a suggestion, and no value shows in an error's text."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        unknown = [str(key) for key in data if key not in cls.model_fields] if isinstance(data, dict) else []
        if unknown:
            details = [unknown_key(key, cls.model_fields) for key in unknown]
            raise ValidationError.from_exception_data(cls.__name__, details, hide_input=True)
        return data


def unknown_key(key: str, known: Iterable[str]) -> InitErrorDetails:
    """The error for a key that is not known, at its own path, with the nearest one that is."""
    text = PydanticCustomError(
        "unknown_key",
        "unknown key '{key}'.{suggestion}",
        {"key": key, "suggestion": suggestion(key, known)},
    )
    return InitErrorDetails(type=text, loc=(key,), input=None)


class DatabaseEntry(Section):
    """Where a database is, and the tag at which it is read (None for its current state)."""

    location: NonBlank = Field(repr=False)
    tag: NonBlank | None = None


def _as_entry(value: Any) -> Any:
    return {"location": value} if isinstance(value, str) else value


class StorageSection(Section):
    """A storage engine's section: the databases it places, by name, in order.

    A value is a location, or `{location, tag}`. An engine's own section derives from this one and adds its keys.
    """

    databases: dict[NonBlank, Annotated[DatabaseEntry, BeforeValidator(_as_entry)]] = Field(default_factory=dict)
    storage_options: dict[str, SecretStr] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _refuse_single_location(cls, data: Any) -> Any:
        if isinstance(data, dict) and "uri" in data:
            raise PydanticCustomError(
                "single_location",
                "'uri' is not a key here. Place databases by name under 'databases': {{name: location}}",
            )
        return data
