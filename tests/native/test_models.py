"""The models of the core's protocols for weakly ordered machines: each holds, no twin does.

A model (*.pml) is beside the code that it stands for and names it in a line "Code:". A twin is the
model without one fence, release, acquire or wait: a line "#define NO_... number", and the functions
that have what the twin lacks. The checker is spin; one program for each model checks all its twins.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.native.compiling import CORE, run, tool_at

LIBRARY = CORE.parent
MEMORY = {CORE / "weak.pml", CORE / "views.pml"}
"""The machines that models run on."""
MODELS = {path.stem: path for path in sorted(LIBRARY.rglob("*.pml")) if path not in MEMORY}
TWIN = re.compile(r"^#define (NO_\w+) +(\d+)(?: +/\* (.*) \*/)?$", re.MULTILINE)
ORDERS = {
    "NO_FENCE": ("atomic_thread_fence",),
    "NO_RELEASE_FENCE": ("atomic_thread_fence(memory_order_release)",),
    "NO_ACQUIRE_FENCE": ("atomic_thread_fence(memory_order_acquire)",),
    "NO_RELEASE": ("memory_order_release",),
    "NO_ACQUIRE": ("memory_order_acquire",),
}
"""What the functions have that a twin of this kind names."""
CHOOSES = """
#include <stdlib.h>
static int chosen;
__attribute__((constructor)) static void choose(void) { chosen = atoi(getenv("TWIN")); }
"""
"""The checker takes the number of the twin from its environment."""
FLAGS = ("-O0", "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=2000", "-include", "chosen.h")
LIMITS = ("-m100000", "-w16")  # steps of a run; logarithm of the size of a table
Check = Callable[[str, int], str]


def twins(model: str) -> dict[str, int]:
    """{twin: its number}"""
    text = MODELS[model].read_text(encoding="utf-8")
    return {match[1]: int(match[2]) for match in TWIN.finditer(text)}


def sources(model: str) -> list[Path]:
    """The code that a model stands for."""
    named = re.search(r"^   Code: (.*)$", MODELS[model].read_text(encoding="utf-8"), re.MULTILINE)
    assert named, f"{model} does not name its code"
    folders = CORE, LIBRARY
    return [
        next(folder / name for folder in folders if (folder / name).is_file())
        for name in named[1].split()
    ]


@cache
def functions() -> dict[str, str]:
    """{name: text} of the functions of the core; of those that share a name, all texts."""
    texts: dict[str, str] = {}
    for path in [*CORE.glob("*/*.[ch]"), *CORE.glob("*.h")]:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for match in re.finditer(r"^\w[^;{}=#]*?\b(\w+)\([^;{}]*\)\n\{\n.*?^\}", text, re.M | re.S):
            texts[match[1]] = texts.get(match[1], "") + match[0]
    return texts


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    """check(model, twin) returns what the checker finds; twin 0 is the model itself."""
    spin, cc = tool_at("spin"), tool_at("cc")

    @cache
    def checker(model: str) -> Path:
        folder = tmp_path_factory.mktemp(model)
        (folder / "chosen.h").write_text(CHOOSES)
        text = f'#define TWIN c_expr {{ chosen }}\n#include "{MODELS[model]}"\n'
        (folder / "model.pml").write_text(text)
        for command in ([spin, "-a", "model.pml"], [cc, *FLAGS, "pan.c", "-o", "pan"]):
            made = run("env", "-C", folder, *command)
            assert made.returncode == 0, made.stdout
        return folder

    def checked(model: str, twin: int) -> str:
        folder = checker(model)
        output = run("env", "-C", folder, f"TWIN={twin}", folder / "pan", *LIMITS).stdout
        assert re.search(r"errors: \d", output), output
        assert "max search depth too small" not in output, output
        assert "out of memory" not in output, output
        return output

    return checked


@pytest.mark.parametrize("model", MODELS)
def test_a_model_holds(model: str, check: Check) -> None:
    assert "errors: 0" in check(model, 0)


@pytest.mark.parametrize(
    ("model", "twin"), [(model, twin) for model in MODELS for twin in twins(model)]
)
def test_a_model_without_an_order_is_refuted(model: str, twin: str, check: Check) -> None:
    output = check(model, twins(model)[twin])
    assert re.search(r"^pan:1: (assertion violated|invalid end state)", output, re.M), output


@pytest.mark.parametrize("model", MODELS)
def test_each_twin_is_used_and_has_a_number_of_its_own(model: str) -> None:
    text = MODELS[model].read_text(encoding="utf-8")
    assert sorted(twins(model).values()) == [*range(1, len(twins(model)) + 1)]
    for twin in twins(model):
        assert len(re.findall(rf"\b{twin}\b", text)) > 1, f"{twin} changes nothing"


@pytest.mark.parametrize("model", MODELS)
def test_a_model_and_its_code_name_each_other(model: str) -> None:
    for source in sources(model):
        written = re.findall(r"\w+\.pml", source.read_text(encoding="utf-8"))
        assert f"{model}.pml" in written, f"{source} does not name {model}.pml"


def test_no_code_names_a_model_that_is_not_its_own() -> None:
    for source in [*LIBRARY.rglob("*.[ch]"), *LIBRARY.rglob("*.py")]:
        for named in re.findall(r"(\w+)\.pml", source.read_text(encoding="utf-8")):
            assert source in sources(named), f"{source} names {named}.pml"


@pytest.mark.parametrize("model", MODELS)
def test_the_code_has_each_order_whose_lack_is_refuted(model: str) -> None:
    for twin, _, where in TWIN.findall(MODELS[model].read_text(encoding="utf-8")):
        names = re.findall(r"(\w+)\(\)", where)
        assert names, twin
        for name in names:
            assert name in functions(), f"{twin}: there is no function {name}"
        kinds = [kind for kind in ORDERS if twin.startswith(f"{kind}_")]
        if kinds:
            (order,) = ORDERS[max(kinds, key=len)]
            for name in names:
                assert order in functions()[name], f"{twin}: {name} has no {order}"
