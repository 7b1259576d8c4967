"""What Slurm says of a job, in words for a user."""

from experiments.cluster.states import NEVER, State, described, ending, waiting

LINE = (
    "JobId=7 JobName=hbmcomm-quick UserId=me(1000) Priority=4294901757 JobState={} Reason={} "
    "Dependency=(null) Requeue=0 ExitCode={} RunTime=00:00:03 TimeLimit=00:30:00"
)


def test_the_ends_of_jobs_are_told_apart() -> None:
    for state, reason, code, wanted in (
        ("TIMEOUT", "TimeLimit", "0:0", "job 7 reached its time limit; go on"),
        ("CANCELLED", "None", "0:15", "job 7 was cancelled; go on"),
        ("PREEMPTED", "None", "0:0", "job 7 gave its nodes to a job of higher priority; go on"),
        ("NODE_FAIL", "NodeDown", "1:0", "job 7 lost a node; go on"),
        ("FAILED", "NonZeroExitCode", "1:0", "job 7 failed with exit code 1; go on"),
        ("FAILED", "RaisedSignal:9", "0:9", "job 7 failed by signal 9; go on"),
        ("OUT_OF_MEMORY", "OutOfMemory", "0:125", "job 7 ran out of memory; go on"),
        ("LAUNCH_FAILED", "None", "0:0", "job 7 ended as LAUNCH_FAILED; go on"),
    ):
        job_state = described(LINE.format(state, reason, code))
        assert job_state.is_over and not job_state.is_complete, state
        assert ending("7", job_state, "go on") == wanted


def test_a_job_whose_script_failed_is_over_while_a_node_is_out_of_reach() -> None:
    state = described(LINE.format("COMPLETING", "NonZeroExitCode", "1:0"))
    assert state.is_over and ending("7", state, "go on") == "job 7 failed with exit code 1; go on"


def test_a_job_that_ended_well_is_complete() -> None:
    assert described(LINE.format("COMPLETED", "None", "0:0")).is_complete


def test_a_job_that_waits_or_runs_is_not_over() -> None:
    for state in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"):
        assert not State(state).is_over, state
    assert waiting(State("RUNNING")) == "running"


def test_reasons_that_do_not_pass_mean_that_it_never_starts() -> None:
    for reason, why in NEVER.items():
        state = described(LINE.format("PENDING", reason, "0:0"))
        assert state.never, reason
        assert f"job 7 would never start: {why} ({reason})" in ending("7", state, "")


def test_a_reason_may_have_details() -> None:
    line = LINE.format("PENDING", "ReqNodeNotAvail,_UnavailableNodes:n2", "0:0")
    assert described(line).never == NEVER["ReqNodeNotAvail"]


def test_reasons_that_pass_are_shown() -> None:
    for reason in ("Resources", "Priority", "BeginTime", "AssocGrpCpuLimit"):
        state = described(LINE.format("PENDING", reason, "0:0"))
        assert not state.never, reason
        assert waiting(state) == f"waits for nodes ({reason})"
