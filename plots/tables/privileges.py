"""What the kernel says in numbers of a process's privileges, in words. Pure."""

CAPABILITIES = (
    *("chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid"),
    *("setpcap", "linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw"),
    *("ipc_lock", "ipc_owner", "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct"),
    *("sys_admin", "sys_boot", "sys_nice", "sys_resource", "sys_time", "sys_tty_config", "mknod"),
    *("lease", "audit_write", "audit_control", "setfcap", "mac_override", "mac_admin", "syslog"),
    *("wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf", "checkpoint_restore"),
)
"""By the number of their bit: linux/capability.h."""
_FEW = 6  # so many are named; of more, those that are lacking
_SECCOMP = {"0": "off", "1": "strict", "2": "filter"}


def capabilities(mask: str) -> str:
    """ "none", "cap_sys_nice", "all", "all but cap_sys_module"; from hexadecimal digits.

    A text that is no such mask stays as it is.
    """
    try:
        bits = int(mask, 16)
    except ValueError:
        return mask
    here = [f"cap_{name}" for bit, name in enumerate(CAPABILITIES) if bits >> bit & 1]
    lacking = [f"cap_{name}" for bit, name in enumerate(CAPABILITIES) if not bits >> bit & 1]
    if not here:
        return "none"
    if not lacking:
        return "all"
    if len(here) > _FEW and len(lacking) <= _FEW:
        return f"all but {', '.join(lacking)}"
    return ", ".join(here)


def seccomp(mode: str) -> str:
    """The mode in /proc/self/status as "off", "strict" or "filter"."""
    return _SECCOMP.get(mode, mode)
