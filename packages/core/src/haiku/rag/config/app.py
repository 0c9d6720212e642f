"""The whole configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from haiku.rag.config.models import (
    EmbeddingsConfig,
    HookEntry,
    PluginsConfig,
    ProcessingConfig,
    PromptsConfig,
    QAConfig,
    RerankingConfig,
    SearchConfig,
    StorageConfig,
    absolute,
    expanded,
)
from haiku.rag.config.section import Section, unknown_key
from haiku.rag.plugins import ConfigSectionRecord
from haiku.rag.plugins.kernel import Kernel, load_kernel


def _as_hook(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class AppConfig(BaseModel):
    """Core's sections as fields, and the sections of installed plugins by `section(name)`.

    An unknown key is refused with its path and the nearest known one. A section that belongs to something that is
    not installed, and that core's extras name, is accepted and listed in `inert_sections`. `kernel` holds the
    plugins that this configuration allows.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    storage: StorageConfig = Field(default_factory=StorageConfig)
    embeddings: EmbeddingsConfig = EmbeddingsConfig()
    reranking: RerankingConfig = RerankingConfig()
    search: SearchConfig = SearchConfig()
    processing: ProcessingConfig = ProcessingConfig()
    qa: QAConfig = QAConfig()
    prompts: PromptsConfig = PromptsConfig()
    plugins: PluginsConfig = PluginsConfig()
    hooks: list[Annotated[HookEntry, BeforeValidator(_as_hook)]] = Field(default_factory=list)

    _kernel: Kernel = PrivateAttr()
    _sections: dict[str, Section] = PrivateAttr(default_factory=dict)
    _given: frozenset[str] = PrivateAttr(default=frozenset())
    _inert: dict[str, Any] = PrivateAttr(default_factory=dict)
    _base_dir: Path | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _validate_sections(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if not isinstance(data, Mapping):
            return handler(data)
        kernel = (info.context or {}).get("kernel") or _kernel_of(data.get("plugins"))
        own = {key: value for key, value in data.items() if key in cls.model_fields and value is not None}
        others = {str(key): value for key, value in data.items() if key not in cls.model_fields}
        errors: list[InitErrorDetails] = []
        sections, inert = _plugin_sections(kernel, others, errors, known=set(cls.model_fields))
        try:
            config = handler(own)
        except ValidationError as error:
            errors += _details(error, ())
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors, hide_input=True)
        config._kernel, config._sections, config._inert = kernel, sections, inert
        config._given = frozenset(sections)
        return config

    @property
    def kernel(self) -> Kernel:
        """The plugins that this configuration allows."""
        return self._kernel

    @property
    def base_dir(self) -> Path:
        """What relative paths are relative to: the folder of the file, or the working directory."""
        return self._base_dir or absolute(".")

    @property
    def inert_sections(self) -> Mapping[str, Any]:
        """Sections that were accepted and that nothing installed reads, as they were given."""
        return self._inert

    @property
    def section_names(self) -> tuple[str, ...]:
        """The plugins' sections that were given, in their order."""
        return tuple(name for name in self._sections if name in self._given)

    def section(self, name: str) -> Any:
        """A plugin's section, with its defaults where it was not given; an instance of the model that it registered."""
        if name not in self._sections:
            self._sections[name] = self.kernel.resolve(ConfigSectionRecord.kind, name)()
        return self._sections[name]

    def resolve_path(self, text: str) -> Path:
        """An absolute local path: `~` expanded, a relative one taken from `base_dir`."""
        path = expanded(text)
        return path if path.is_absolute() else absolute(Path(self.base_dir, path))


def _kernel_of(settings: Any) -> Kernel:
    try:
        plugins = PluginsConfig.model_validate(settings or {})
    except ValidationError:
        plugins = PluginsConfig()
    return load_kernel(disabled=plugins.disabled, prefer=plugins.prefer)


def _plugin_sections(
    kernel: Kernel, given: Mapping[str, Any], errors: list[InitErrorDetails], *, known: set[str]
) -> tuple[dict[str, Section], dict[str, Any]]:
    registered = {record.name for record in kernel.records(ConfigSectionRecord)}
    sections: dict[str, Section] = {}
    inert: dict[str, Any] = {}
    for name, value in given.items():
        if name in registered:
            try:
                model = kernel.resolve(ConfigSectionRecord.kind, name)
                sections[name] = model.model_validate({} if value is None else value)
            except ValidationError as error:
                errors += _details(error, (name,))
        elif kernel.knows_section(name):
            inert[name] = value
        else:
            errors.append(unknown_key(name, known | registered))
    return sections, inert


def _details(error: ValidationError, prefix: tuple[str, ...]) -> list[InitErrorDetails]:
    return [
        InitErrorDetails(type=PydanticCustomError("invalid", line["msg"]), loc=(*prefix, *line["loc"]), input=None)
        for line in error.errors(include_url=False, include_context=False, include_input=False)
    ]
