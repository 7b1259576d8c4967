"""How a job of Slurm ended, or why it does not start, in words for a user. Pure."""

import re
from dataclasses import dataclass

WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")
AT_WORK = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT")
FAILING = "NonZeroExitCode"
"""The reason of a job that has failed, also while it is COMPLETING: a node may be out of reach."""
GONE = "UNKNOWN"
"""In place of the state of a job that Slurm has forgotten."""
NEVER = {
    "PartitionNodeLimit": "it asks for more nodes than the partition gives to a job",
    "PartitionTimeLimit": "it asks for more time than the partition gives to a job",
    "PartitionConfig": "the partition cannot run such a job",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition is inactive",
    "BadConstraints": "no node has what it asks for",
    "AccountNotAllowed": "its account may not use the partition",
    "InvalidAccount": "its account is not valid",
    "QOSNotAllowed": "its quality of service may not be used there",
    "InvalidQOS": "its quality of service is not valid",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "a user holds it",
    "JobLaunchFailure": "it could not be started",
    "launch_failed_requeued_held": "it could not be started",
    "ReqNodeNotAvail": "nodes that it needs are down or reserved",
    "DependencyNeverSatisfied": "what it depends on has failed",
}
"""Reasons for which a job waits without end, unless a person acts."""
ENDS = {
    "TIMEOUT": "reached its time limit",
    "CANCELLED": "was cancelled",
    "PREEMPTED": "gave its nodes to a job of higher priority",
    "NODE_FAIL": "lost a node",
    "OUT_OF_MEMORY": "ran out of memory",
    "BOOT_FAIL": "could not boot its nodes",
    "DEADLINE": "could not end before its deadline",
    "REVOKED": "was revoked",
    "FAILED": "failed",
    GONE: "is no longer known to Slurm, which does not tell how it ended",
}


@dataclass(frozen=True)
class State:
    """A job as Slurm describes it.

    Attributes:
        name: "RUNNING", "TIMEOUT".
        reason: why it waits or ended, in Slurm's word; "" for none.
        code: its exit code.
        signal: the signal that ended it; 0 for none.
    """

    name: str
    reason: str = ""
    code: int = 0
    signal: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.name not in (*WAITING, *AT_WORK)

    @property
    def is_complete(self) -> bool:
        """Whether its command ended well."""
        return self.name == "COMPLETED"

    @property
    def never(self) -> str:
        """Why it will not start by itself; "" where it may."""
        word = self.reason.partition(",")[0].strip("() ")
        return NEVER.get(word, "") if self.name == "PENDING" else ""


def described(line: str) -> State:
    """The state in a line of `scontrol show job --oneliner`."""
    fields = dict(re.findall(r"(JobState|Reason|ExitCode)=(\S+)", line))
    code, _, signal = fields.get("ExitCode", "0:0").partition(":")
    reason = fields.get("Reason", "None")
    if reason == FAILING:
        fields["JobState"] = "FAILED"
    return State(
        fields.get("JobState", GONE),
        "" if reason == "None" else reason,
        int(code),
        int(signal or 0),
    )


def waiting(state: State) -> str:
    """What a job that has not ended does, for the user's terminal."""
    if state.name not in WAITING:
        return state.name.lower()
    return f"waits for nodes ({state.reason})" if state.reason else "waits for nodes"


def ending(job: str, state: State, advice: str) -> str:
    """What a job came to that did not end well.

    Args:
        advice: what to do next.
    """
    if state.never:
        return (
            f"job {job} would never start: {state.never} ({state.reason}); it was cancelled: "
            "change the site's table in sites.toml or the flags, then submit again"
        )
    text = f"job {job} {ENDS.get(state.name, f'ended as {state.name}')}"
    if state.name == "FAILED":
        text += f" with exit code {state.code}" if state.code else f" by signal {state.signal}"
    return f"{text}; {advice}"
