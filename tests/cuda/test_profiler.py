"""Launches and copies of the device are rows of a profile."""

import flambeau as torch


def test_rows_of_launches_and_copies():
    host = torch.linspace(0, 1, 100)
    x = host.cuda()
    f = torch.compile(lambda t: t.sin().sum())
    (x + 1).sum(), f(x)  # they are compiled before
    with torch.profiler.profile() as prof:
        (host.cuda() + 1).sum().item()
        f(x)
        torch.special.bessel_j0(x)
    found = [
        e.name.split(" ")[0] if e.name.startswith("launch") else e.name for e in prof.events() if e.category == "device"
    ]
    # The sum, its elements and the graph's kernel; the number, and what the Bessel function took there and back.
    assert (
        found.count("launch") >= 3 and found.count("copy to the host") == 2 and found.count("copy to the device") == 2
    )
    table = prof.key_averages().table()
    assert "copy to the device" in table and "launch k" in table
