"""Graphs, sorting, tables and searches through combinations."""

import numpy as np

# ---- graphs


def bellman_ford(source, target, weight, n):
    distance = np.full(n, np.inf)
    distance[0] = 0.0
    for _ in range(n - 1):
        changed = False
        for e in range(source.size):
            candidate = distance[source[e]] + weight[e]
            if candidate < distance[target[e]]:
                distance[target[e]] = candidate
                changed = True
        if not changed:
            break
    return distance


def bfs(starts, neighbours, root):
    n = starts.size - 1
    depth = np.full(n, -1, dtype=np.int32)
    queue = np.empty(n, dtype=np.int64)
    head, tail = 0, 1
    queue[0] = root
    depth[root] = 0
    while head < tail:
        u = queue[head]
        head += 1
        for k in range(starts[u], starts[u + 1]):
            v = neighbours[k]
            if depth[v] < 0:
                depth[v] = depth[u] + 1
                queue[tail] = v
                tail += 1
    return depth


def dijkstra_heap(starts, neighbours, weights, root):
    n = starts.size - 1
    distance = np.full(n, np.inf)
    keys = np.empty(neighbours.size + 1)
    nodes = np.empty(neighbours.size + 1, dtype=np.int64)
    distance[root] = 0.0
    keys[0], nodes[0], size = 0.0, root, 1
    while size > 0:
        d, u = keys[0], nodes[0]
        size -= 1
        key, node = keys[size], nodes[size]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and keys[child + 1] < keys[child]:
                child += 1
            if keys[child] >= key:
                break
            keys[i], nodes[i] = keys[child], nodes[child]
            i = child
        keys[i], nodes[i] = key, node
        if d > distance[u]:
            continue
        for k in range(starts[u], starts[u + 1]):
            v = neighbours[k]
            candidate = d + weights[k]
            if candidate < distance[v]:
                distance[v] = candidate
                i = size
                size += 1
                while i > 0 and keys[(i - 1) // 2] > candidate:
                    keys[i], nodes[i] = keys[(i - 1) // 2], nodes[(i - 1) // 2]
                    i = (i - 1) // 2
                keys[i], nodes[i] = candidate, v
    return distance


def find(parent, x):
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


def kruskal(source, target, weight, n):
    order = np.argsort(weight)
    parent = np.arange(n)
    total, edges = 0.0, 0
    for e in order:
        a, b = find(parent, source[e]), find(parent, target[e])
        if a != b:
            parent[a] = b
            total += weight[e]
            edges += 1
    return total, edges


def prim(w):
    n = w.shape[0]
    inside = np.zeros(n, dtype=bool)
    cheapest = np.full(n, np.inf)
    cheapest[0] = 0.0
    total = 0.0
    for _ in range(n):
        u = -1
        for v in range(n):
            if not inside[v] and (u < 0 or cheapest[v] < cheapest[u]):
                u = v
        inside[u] = True
        total += cheapest[u]
        for v in range(n):
            if not inside[v] and w[u, v] < cheapest[v]:
                cheapest[v] = w[u, v]
    return total


def topological(starts, neighbours):
    n = len(starts) - 1
    degree = np.zeros(n, dtype=np.int64)
    for v in neighbours:
        degree[v] += 1
    order = np.empty(n, dtype=np.int64)
    tail = 0
    for v in range(n):
        if degree[v] == 0:
            order[tail] = v
            tail += 1
    head = 0
    while head < tail:
        u = order[head]
        head += 1
        for k in range(starts[u], starts[u + 1]):
            v = neighbours[k]
            degree[v] -= 1
            if degree[v] == 0:
                order[tail] = v
                tail += 1
    return order[:tail]


def triangles(adjacency):
    n = adjacency.shape[0]
    count = 0
    for i in range(n):
        for j in range(i + 1, n):
            if adjacency[i, j]:
                for k in range(j + 1, n):
                    if adjacency[i, k] and adjacency[j, k]:
                        count += 1
    return count


# ---- sorting, searching, tables


def merge_sort(x):
    a, b = x.copy(), np.empty_like(x)
    n, width = len(a), 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j >= high or a[i] <= a[j]):
                    b[k] = a[i]
                    i += 1
                else:
                    b[k] = a[j]
                    j += 1
        a, b = b, a
        width *= 2
    return a


def radix_sort(x):
    a, b = x.copy(), np.empty_like(x)
    for shift in range(0, 32, 8):
        counts = np.zeros(257, np.int64)
        for v in a:
            counts[((v >> shift) & 255) + 1] += 1
        for k in range(256):
            counts[k + 1] += counts[k]
        for v in a:
            digit = (v >> shift) & 255
            b[counts[digit]] = v
            counts[digit] += 1
        a, b = b, a
    return a


def insertion_argsort(x):
    order = np.arange(x.shape[0])
    for i in range(1, x.shape[0]):
        k = order[i]
        j = i - 1
        while j >= 0 and x[order[j]] > x[k]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = k
    return order


def hash_count(keys, size):
    slots = np.full(size, -1, np.int64)
    counts = np.zeros(size, np.int64)
    distinct = 0
    for key in keys:
        h = (key * 2654435761) % size
        while slots[h] != -1 and slots[h] != key:
            h = (h + 1) % size
        if slots[h] == -1:
            slots[h] = key
            distinct += 1
        counts[h] += 1
    return distinct, counts.max()


def kd_build_query(points, queries):
    n = len(points)
    order = np.arange(n)
    stack = np.empty((64, 3), np.int64)
    stack[0] = 0, n, 0
    top = 1
    while top > 0:
        top -= 1
        low, high, axis = stack[top]
        if high - low <= 1:
            continue
        middle = (low + high) // 2
        left, right = low, high - 1
        while left < right:
            pivot = points[order[(left + right) // 2], axis]
            i, j = left, right
            while i <= j:
                while points[order[i], axis] < pivot:
                    i += 1
                while points[order[j], axis] > pivot:
                    j -= 1
                if i <= j:
                    order[i], order[j] = order[j], order[i]
                    i += 1
                    j -= 1
            if middle <= j:
                right = j
            elif middle >= i:
                left = i
            else:
                break
        stack[top, 0], stack[top, 1], stack[top, 2] = low, middle, 1 - axis
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = middle + 1, high, 1 - axis
        top += 2
    nearest = np.empty(len(queries), np.int64)
    for q in range(len(queries)):
        best, where = np.inf, -1
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, 0
        top = 1
        while top > 0:
            top -= 1
            low, high, axis = stack[top, 0], stack[top, 1], stack[top, 2]
            if high <= low:
                continue
            middle = (low + high) // 2
            p = points[order[middle]]
            d = (p[0] - queries[q, 0]) ** 2 + (p[1] - queries[q, 1]) ** 2
            if d < best:
                best, where = d, order[middle]
            difference = queries[q, axis] - p[axis]
            near = (low, middle) if difference < 0 else (middle + 1, high)
            far = (middle + 1, high) if difference < 0 else (low, middle)
            if difference * difference < best:
                stack[top, 0], stack[top, 1], stack[top, 2] = far[0], far[1], 1 - axis
                top += 1
            stack[top, 0], stack[top, 1], stack[top, 2] = near[0], near[1], 1 - axis
            top += 1
        nearest[q] = where
    return nearest


def fenwick(values, queries):
    n = len(values)
    tree = np.zeros(n + 1)
    for i in range(n):
        k = i + 1
        while k <= n:
            tree[k] += values[i]
            k += k & -k
    out = np.empty(len(queries))
    for q in range(len(queries)):
        k, s = queries[q], 0.0
        while k > 0:
            s += tree[k]
            k -= k & -k
        out[q] = s
    return out


# ---- combinatorics


def n_queens(n):
    columns = np.full(n, -1)
    row, count = 0, 0
    while row >= 0:
        columns[row] += 1
        if columns[row] == n:
            columns[row] = -1
            row -= 1
            continue
        free = True
        for r in range(row):
            if columns[r] == columns[row] or abs(columns[r] - columns[row]) == row - r:
                free = False
                break
        if free:
            if row == n - 1:
                count += 1
            else:
                row += 1
    return count


def permutations_by_heap(n):
    a, c = np.arange(n), np.zeros(n, np.int64)
    total, i = 0, 0
    while i < n:
        if c[i] < i:
            k = c[i] if i % 2 else 0
            a[k], a[i] = a[i], a[k]
            total += a[0] * a[n - 1]
            c[i] += 1
            i = 0
        else:
            c[i] = 0
            i += 1
    return total


def sudoku(grid):
    empty = np.argwhere(grid == 0)
    k, tries = 0, 0
    while 0 <= k < len(empty):
        r, c = empty[k, 0], empty[k, 1]
        value = grid[r, c] + 1
        grid[r, c] = 0
        placed = False
        while value <= 9:
            tries += 1
            ok = True
            for i in range(9):
                if grid[r, i] == value or grid[i, c] == value or grid[r // 3 * 3 + i // 3, c // 3 * 3 + i % 3] == value:
                    ok = False
                    break
            if ok:
                grid[r, c] = value
                placed = True
                break
            value += 1
        k += 1 if placed else -1
    return tries


def pascal_modulo(n, p):
    row = np.zeros(n + 1, np.int64)
    row[0] = 1
    odd = 0
    for i in range(1, n + 1):
        for j in range(i, 0, -1):
            row[j] = (row[j] + row[j - 1]) % p
        for j in range(i + 1):
            if row[j]:
                odd += 1
    return odd


def gray_codes(bits):
    out = np.empty((1 << bits, bits), np.uint8)
    for i in range(1 << bits):
        g = i ^ (i >> 1)
        for b in range(bits):
            out[i, b] = (g >> b) & 1
    return out
