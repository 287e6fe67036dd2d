"""The one form of everything that goes wrong."""

from pydantic import BaseModel, ConfigDict, Field


class Fault(BaseModel):
    """One thing that is wrong with a request, and where."""

    model_config = ConfigDict(extra="forbid")

    where: str
    said: str


class ProblemAnswer(BaseModel):
    """Why a request was not answered (RFC 9457)."""

    model_config = ConfigDict(extra="forbid", title="Problem")

    type: str = Field(examples=["urn:packhorse:problem:lost"])
    title: str
    status: int
    detail: str = Field(description="What was wrong this time, and what to do.")
    code: str = Field(description="One word for programs.", examples=["lost"])
    errors: list[Fault] | None = Field(
        default=None, description="Of a request that is not as this document asks."
    )
