"""What all models of the API share: nothing unknown goes in or out, and texts that no table could hold are refused at the door."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from packhorse.core.acts import MAX_WHY


class Answer(BaseModel):
    """Be the base of what the API answers; what the document does not name is not sent."""

    model_config = ConfigDict(extra="forbid")


class Asked(BaseModel):
    """Be the base of what the API is asked; a name that nobody knows is refused, for a filter that is ignored lets all pass."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _names_what_is_known(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Say of a name that nobody knows which are known: it was mistyped, most likely."""
        try:
            return handler(value)
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False)
            if all(one["type"] != "extra_forbidden" for one in wrong):
                raise
            raise ValidationError.from_exception_data(
                cls.__name__, [_told(one, cls.model_fields) for one in wrong]
            ) from None


def _told(wrong: ErrorDetails, known: Iterable[str]) -> InitErrorDetails:
    said = wrong["msg"]
    if wrong["type"] == "extra_forbidden" and len(wrong["loc"]) == 1:
        said = f"is not known here; known are: {', '.join(known)}"
    kind = PydanticCustomError(wrong["type"], "{said}", {"said": said})
    return InitErrorDetails(type=kind, loc=wrong["loc"], input=wrong["input"])


_DATE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")


def _whole(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is no character") from None
    return value


def _is_text(value: object) -> object:
    """Take no number for a time: seconds since 1970 are nobody's meaning here."""
    if isinstance(value, str) and not _DATE.match(value):
        raise ValueError("a time looks like 2026-01-02T03:04:05Z")
    return value


NO_NUL = r"^[^\x00]*$"
"""What no text of a table may hold; stands in every type of text here, before the check of what a pattern can't say."""
WHOLE = AfterValidator(_whole)
Name = Annotated[str, Field(min_length=1, max_length=300, pattern=NO_NUL), WHOLE]
"""A name of a group, topic, type or the like."""
Key = Annotated[
    str,
    Field(max_length=10_000, pattern=NO_NUL, description="A message's key; its bytes are the text in UTF-8."),
    WHOLE,
]
Why = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_WHY,
        pattern=NO_NUL,
        description="The reason, for the record.",
        examples=["fixed in 1.4.2"],
    ),
    WHOLE,
]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""A number that a column of four bytes holds."""
Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_is_text),
    Field(description="ISO 8601 with its zone; answers are in UTC."),
]
Cursor = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2_000,
        pattern=NO_NUL,
        description="`next` of the page before; its form is nobody's business.",
    ),
    WHOLE,
]


class WithKey(Answer):
    """
    What may show a key.

    Attributes:
        key: Only with `show_key=true`.
    """

    has_key: bool
    key: str | None = None
