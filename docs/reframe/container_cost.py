"""A ReFrame test: a paired campaign of hbmcomm, and bounds for what its containers may cost.

docs/reframe.md says how to run it and how to choose the bound. It reads the campaign by
`./inv export --format openmetrics`, and needs nothing but ReFrame in ReFrame's own environment.
"""

import re
import shlex
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, sanity_function, variable

# ruff: noqa: RUF012 (ReFrame's metaclass gives each test its own lists)

EXPORT = "campaign.prom"
ENDS = {"time_ratio": "", "time_joint_low_ratio": "_low", "time_joint_high_ratio": "_high"}
"""Families of the export, and how the names of their performance variables end."""
SAMPLE = re.compile(rf"^hbmcomm_({'|'.join(ENDS)})\{{(.*)\}} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
ALWAYS = ("arm", "operation", "transport", "bytes")
"""Labels that are in every variable's name; others are where they have several values."""
DETERMINED = ("environment", "profile", "layout", "emulated")
"""Labels that arm and kind determine."""


@rfm.simple_test
class ContainerCost(rfm.RunOnlyRegressionTest):
    """Time in containers over that on the bare host, for each operation and size.

    A variable NAME is the median ratio over the paired blocks; NAME_low and NAME_high are the ends
    of its interval, which holds for all ratios of the campaign at once with 95 % confidence.
    """

    inv = variable(str, value=shlex.quote(str(Path(__file__).resolve().parents[2] / "inv")))
    """The command that runs campaigns, as the shell takes it."""
    experiment = variable(str, value="quick")
    """A name that `./inv run --list` shows, or a .toml file by its absolute path."""
    flags = variable(str, value="--ops allreduce --kinds regular --sizes 64KiB,4MiB")
    """More words for `./inv run`."""
    arms = variable(typ.List[str], value=["docker-default-one", "docker-tuned-one"])
    """What is compared with the host. The test fails where one of them was not measured."""
    limit = variable(float, value=0.1)
    """An arm may take so much longer than the host: 0.1 for 10 %."""
    bounded = variable(str, value="low")
    """The end of the interval that is held against the limit: low or high."""

    descr = "Collectives in containers and on the bare host, paired"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    sourcesdir = None
    exclusive_access = True
    keep_files = [EXPORT, "campaign"]

    @run_before("setup")
    def refuse_bad_bounds(self):
        """Before anything is measured. An error after `init` would skip the test instead."""
        if self.bounded not in ("low", "high"):
            raise ValueError(f"bounded is {self.bounded!r}; set it to low or high")
        if self.limit < 0:
            raise ValueError(f"limit is {self.limit}; set it to 0 or more, such as 0.1 for 10 %")

    @run_before("run")
    def measure_and_export(self):
        self.executable = self.inv
        words = ["run", "--experiment", shlex.quote(self.experiment), self.flags]
        self.executable_opts = [*words, "--out", "campaign"]
        self.postrun_cmds = [f"{self.inv} export campaign --format openmetrics --out {EXPORT}"]

    @sanity_function
    def every_arm_has_intervals(self):
        """A bound on what is missing would hold without being looked at."""
        sn.evaluate(sn.assert_true(sn.path_isfile(EXPORT), f"no campaign: see {self.stderr}"))
        samples = self.samples()
        absent = set(self.arms) - {labels["arm"] for _, labels, _ in samples}
        sn.evaluate(sn.assert_false(absent, f"not measured: {sorted(absent)}; see {self.stdout}"))
        ends = [end for end, _, _ in samples]
        complete = ends.count("") == ends.count(f"_{self.bounded}")
        return sn.assert_true(complete, "a ratio has no interval; measure 6 blocks or more")

    @run_before("performance")
    def report_and_bound(self):
        """Make each ratio a performance variable; a reference of the test's own stays."""
        samples = self.samples()
        names = {
            key
            for key in samples[0][1]
            if key in ALWAYS
            or (key not in DETERMINED and len({labels.get(key) for _, labels, _ in samples}) > 1)
        }
        ratios = {
            "_".join(labels[key] for key in labels if key in names) + end: value
            for end, labels, value in samples
        }
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(ratios[name]), "ratio")
            for name in sorted(ratios)
        }
        if not self.reference:
            ends = (name for name in ratios if name.endswith(f"_{self.bounded}"))
            self.reference = {"*": dict.fromkeys(ends, (1.0, None, self.limit, "ratio"))}

    def samples(self):
        """(end of a variable's name, labels, value) of each ratio of the arms over the host."""
        text = (Path(self.stagedir) / EXPORT).read_text(encoding="utf-8")
        samples = [
            (ENDS[family], dict(LABEL.findall(labels)), float(value))
            for family, labels, value in SAMPLE.findall(text)
        ]
        return [
            sample
            for sample in samples
            if sample[1]["over"] == "host" and sample[1]["arm"] in self.arms
        ]
