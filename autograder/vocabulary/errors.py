"""The kit's exceptions. What a student gets wrong is a value (a verdict), never one of these.

KitError                     one sentence: what failed, where, what to do
├── UsageError               the caller's: a folder that is not there, two submissions of one student   exit 2
└── GraderFault              the kit's or the machine's                                                 exit 3
    ├── FixtureError         stored tensors missing, altered or refused by the build
    ├── ReleaseError         a handout that cannot be made, or would give something away
    └── SandboxError         a worker could not be started
"""

from __future__ import annotations


class KitError(Exception):
    """One sentence for a person: what failed, where, and what to do."""

    exit_code = 3


class UsageError(KitError):
    """The command was given something that it cannot work on."""

    exit_code = 2


class GraderFault(KitError):  # noqa: N818 (a fault is what the kit calls it, in code and in text)
    """The kit or the machine failed; nobody may lose points for it."""


class FixtureError(GraderFault):
    """Stored tensors are missing, altered, or refused by the build."""


class ReleaseError(GraderFault):
    """A handout cannot be made, or would hold what students must not see."""


class SandboxError(GraderFault):
    """The sandbox could not start or keep a worker."""
