"""Recursive functions that native loops call, and that are compiled themselves."""


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def flood(grid, i, j, old, new):
    if i < 0 or j < 0 or i >= grid.shape[0] or j >= grid.shape[1] or grid[i, j] != old:
        return 0
    grid[i, j] = new
    return (
        1 + flood(grid, i + 1, j, old, new) + flood(grid, i - 1, j, old, new)
        + flood(grid, i, j + 1, old, new) + flood(grid, i, j - 1, old, new)
    )  # fmt: skip


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)
