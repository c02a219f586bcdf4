"""Endpoints and options as they are written on a command line."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket

__all__ = ["is_this_machine", "parse_rendezvous_config", "parse_rendezvous_endpoint"]


def parse_rendezvous_config(text: str) -> dict[str, str]:
    """``k=v,...`` as a dict. ValueError for an option without a name or a value."""
    options: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        key, _, value = (word.strip() for word in part.partition("="))
        if not key:
            raise ValueError(
                "The rendezvous configuration string must be in format <key1>=<value1>,...,<keyN>=<valueN>."
            )
        if not value:
            raise ValueError(f"The rendezvous configuration option '{key}' must have a value specified.")
        options[key] = value
    return options


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """(host, port) of ``host[:port]``; ``localhost`` for nothing. ValueError for what is no host or no port."""
    text = (endpoint or "").strip()
    if not text:
        return "localhost", default_port
    host, _, number = text.rpartition(":")
    if not host or (":" in host and not host.endswith("]")):
        host, number = (text, "") if not text.startswith(":") else ("", number)
    port = default_port
    if number:
        if not number.isdigit() or int(number) > 65535:
            raise ValueError(
                f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between 0 and 65536."
            )
        port = int(number)
    host = host.strip("[]")
    if not re.fullmatch(r"[\w.:-]+", host):
        raise ValueError(
            f"The hostname of the rendezvous endpoint '{endpoint}' must be a dot-separated list of labels, an IPv4 address, or an IPv6 address."
        )
    return host, port


def is_this_machine(host: str) -> bool:
    """Whether ``host`` is a name or an address of this machine."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return True
    own = socket.gethostname()
    if host in (own, socket.getfqdn()):
        return True
    with contextlib.suppress(OSError):
        ours, theirs = ({info[4][0] for info in socket.getaddrinfo(name, None)} for name in (own, host))
        return bool(ours & theirs)
    return False


# PyTorch's names of them.
_parse_rendezvous_config = parse_rendezvous_config
_matches_machine_hostname = is_this_machine
