"""Records of the API that no operation has: jobs and problems."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from hotset.core.rights import Right
from hotset.operations.jobs.store import State


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RemedyRecord(_Record):
    """A remedy for the error."""

    purpose: str = Field(description="What it achieves, read after: to …")
    operation: str | None = Field(description="Such as `tier flush`; null: the refused one again.")
    parameters: dict[str, Any] = Field(description="Its fields, or those to add.")


class Problem(_Record):
    """Why a request failed (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = Field(description="Message, field and what helps, as one text.")
    message: str = Field(default="", description="What is wrong, alone.")
    exit_code: int = Field(default=0, description="As the command line ends with.")
    field: str = Field(default="", description="The field that is refused.")
    remedies: list[RemedyRecord] = Field(default_factory=list, description="What helps.")


class JobRecord(BaseModel):
    """A job as it is now."""

    id: str
    verb: str = Field(description="The operation.")
    values: dict[str, Any] = Field(description="The request, without secrets.")
    machine: str = Field(description="Where it works; may be empty.")
    started: datetime
    ended: datetime | None = Field(description="Null while it runs, and of one that was lost.")
    state: State
    code: int | None = Field(description="The exit code, when it has ended.")
    progress: str = Field(description="The latest measurement; may be empty.")
    done: float | None = Field(description="How much of `total` the step at work has done.")
    total: float | None = Field(description="Of the step at work; null where it is not known.")
    unit: str | None = Field(description="Of `done` and `total`, such as bytes or s.")
    eta_s: float | None = Field(description="Seconds that the step will still take.")
    messages: list[str] = Field(description="The last lines.")


class JobProblem(_Record):
    """Why a job failed, for callers that word it themselves."""

    message: str
    field: str | None = Field(description="The field that is refused.")
    remedies: list[RemedyRecord] = Field(description="What helps.")


class JobDetail(JobRecord):
    """A job with its result."""

    problem: JobProblem | None = Field(description="Why it failed, where hotset foresaw it.")
    cause: str = Field(description="Why it failed; empty of one that did not.")
    result: Any = Field(description="Its result, as `x-hotset` of its operation has it.")


class JobList(BaseModel):
    """All jobs."""

    schema_version: int
    jobs: list[JobRecord]


class Holder(BaseModel):
    """Whose the token of a request is, and who answers."""

    schema_version: int
    name: str = Field(description="The token's.")
    right: Right = Field(description="What it may.")
    version: str = Field(description="Of hotset on this server.")
