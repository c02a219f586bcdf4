"""Functions that ``torch.jit.script`` takes, there and here: ``made(torch)`` gives them by name."""


def made(torch) -> dict:
    F = torch.nn.functional

    def arithmetic(x, n: int, s: float = 2.0):
        a = 2 * x + 1 - x // 2
        return a, 1 - x, 2 / x, 2**x, -x, n // 2 + n % 3, 1 < x, s * n

    def shapes(x, y):
        z = x.view(2, 3)
        w = x.reshape((3, 2))
        z += 1
        r = x[:, 1:]
        v = x[None, 0]
        return (
            z,
            w,
            x[0],
            r,
            v,
            x.view(-1),
            y.repeat(2, 2),
            x.to(torch.float64),
            x.shape,
            x.size(0),
            y.sum((0, 1)),
            x.T,
            x.dtype,
            x.mean(dim=-1, keepdim=True),
        )

    def early(x, n: int):
        if n > 2:
            return x * n
        elif n == 2:
            x = x.relu()
        return -x

    def logic(a: bool, b: bool, n: int):
        return (a and b) or not a, (1 if a else n)

    def loops(x, n: int, flag: bool = True):
        y = x * 2
        for i in range(n):
            y = y + i
            if flag:
                y = torch.relu(y)
        for j in range(1, n, 2):
            y = y * j
        k = 0
        while k < n:
            k += 1
            y = y.abs()
        return y, [n, 3]

    def shifted(x, by: int):
        return x + by

    def calls(x, w):
        y = torch.matmul(x, w.t())
        values, _ = y.topk(2)
        return shifted(values, 3), F.linear(x, w), torch.cat([y, values], 1)

    def optional(x, n: int | None = None):
        return x if n is None else x * 2

    return {f.__name__: f for f in (arithmetic, shapes, early, logic, loops, calls, optional)}
