"""The kernel's numbers in words."""

import pytest

from plots.tables.data_path import capabilities, seccomp


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        ("0000000000000000", "none"),
        ("0000000000800000", "cap_sys_nice"),
        ("0000000000880000", "cap_sys_ptrace, cap_sys_nice"),
        ("000001ffffffffff", "all"),
        ("000001fffffeffff", "all but cap_sys_module"),
        ("not found", "not found"),
    ],
)
def test_a_mask_is_reported_by_names(mask: str, text: str) -> None:
    assert capabilities(mask) == text


def test_what_an_engine_leaves_is_named_one_by_one() -> None:
    assert capabilities("00000000a80425fb").split(", ") == [
        *("cap_chown", "cap_dac_override", "cap_fowner", "cap_fsetid", "cap_kill", "cap_setgid"),
        *("cap_setuid", "cap_setpcap", "cap_net_bind_service", "cap_net_raw", "cap_sys_chroot"),
        *("cap_mknod", "cap_audit_write", "cap_setfcap"),
    ]


@pytest.mark.parametrize(("mode", "text"), [("0", "off"), ("2", "filter"), ("?", "?")])
def test_a_seccomp_mode_has_a_word(mode: str, text: str) -> None:
    assert seccomp(mode) == text
