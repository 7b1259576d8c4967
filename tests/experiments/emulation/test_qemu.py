import pytest

from experiments.emulation import qemu
from experiments.emulation.qemu_command import PROGRAM
from experiments.processes import executables

needs_qemu = pytest.mark.skipif(
    executables.find(PROGRAM) is None, reason=f"no {PROGRAM} is installed"
)


def test_the_boot_sector_says_its_word_to_the_exit_device() -> None:
    sector = qemu.boot_sector()
    assert len(sector) == 512
    assert bytes.fromhex("b010e6f4f4") in sector  # mov al, 0x10; out 0xf4, al; hlt
    assert sector[510:].hex() == "55aa"


def test_the_trial_is_asked_for_exactly_this() -> None:
    assert " ".join(qemu.trial("kvm", "/disk")) == (
        "-accel kvm -machine q35 -cpu max -m 64M -no-reboot -nodefaults "
        "-no-user-config -display none -drive file=/disk,format=raw,if=virtio,readonly=on "
        "-device isa-debug-exit,iobase=0xf4,iosize=0x4"
    )


@needs_qemu
def test_what_runs_everywhere_is_seen_to_run() -> None:
    assert qemu.runs("tcg")


@needs_qemu
def test_an_instruction_that_is_not_there_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    cmpxchg16b, undefined = bytes.fromhex("f0480fc70f"), bytes.fromhex("0f0b0f0b90")
    assert cmpxchg16b in qemu.BOOT
    monkeypatch.setattr(qemu, "BOOT", qemu.BOOT.replace(cmpxchg16b, undefined))
    assert not qemu.runs("tcg")


@needs_qemu
def test_a_program_that_does_not_run_is_no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "BOOT", bytes([0xF4]))  # hlt
    monkeypatch.setattr(qemu, "PATIENCE", 1.0)
    assert not qemu.runs("tcg")


@needs_qemu
def test_an_accelerator_that_qemu_does_not_know_runs_nothing() -> None:
    assert not qemu.runs("xen-of-tomorrow")


@pytest.mark.parametrize(
    ("device", "works", "best"), [(True, True, "kvm"), (True, False, "tcg"), (False, None, "tcg")]
)
def test_the_best_is_kvm_where_it_works(
    monkeypatch: pytest.MonkeyPatch, device: bool, works: bool | None, best: str
) -> None:
    qemu.best.cache_clear()
    monkeypatch.setattr(qemu.os, "access", lambda path, mode: device)
    monkeypatch.setattr(qemu, "runs", lambda name: works if device else pytest.fail("tried"))
    assert qemu.best() == best
    qemu.best.cache_clear()
