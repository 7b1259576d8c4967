"""Provisional; replaced within the hour."""


def memkind_version() -> str | None:
    return None
