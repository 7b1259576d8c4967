"""The kernel's numbers in words."""

from plots.tables.data_path import capabilities, seccomp


def test_a_mask_is_reported_by_names() -> None:
    texts = {
        "0000000000000000": "none",
        "0000000000800000": "cap_sys_nice",
        "0000000000880000": "cap_sys_ptrace, cap_sys_nice",
        "000001ffffffffff": "all",
        "000001fffffeffff": "all but cap_sys_module",
        "not found": "not found",
    }
    assert {mask: capabilities(mask) for mask in texts} == texts


def test_what_an_engine_leaves_is_named_one_by_one() -> None:
    assert capabilities("00000000a80425fb").split(", ") == [
        *("cap_chown", "cap_dac_override", "cap_fowner", "cap_fsetid", "cap_kill", "cap_setgid"),
        *("cap_setuid", "cap_setpcap", "cap_net_bind_service", "cap_net_raw", "cap_sys_chroot"),
        *("cap_mknod", "cap_audit_write", "cap_setfcap"),
    ]


def test_a_seccomp_mode_has_a_word() -> None:
    assert [seccomp(mode) for mode in ("0", "2", "?")] == ["off", "filter", "?"]
