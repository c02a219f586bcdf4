"""Programs as people write them for Numba, by kind: each a function and what makes its arguments for a size."""

import math

import numpy as np

# ---- dynamic programming and strings


def levenshtein_two_rows(a, b):
    previous = np.arange(len(b) + 1)
    current = np.empty(len(b) + 1, np.int64)
    for i in range(len(a)):
        current[0] = i + 1
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            current[j + 1] = min(previous[j + 1] + 1, current[j] + 1, previous[j] + cost)
        previous, current = current, previous
    return previous[len(b)]


def needleman_wunsch(a, b, match, mismatch, gap):
    n, m = a.size, b.size
    score = np.zeros((n + 1, m + 1), dtype=np.int32)
    for i in range(1, n + 1):
        score[i, 0] = i * gap
    for j in range(1, m + 1):
        score[0, j] = j * gap
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            diagonal = score[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch)
            up = score[i - 1, j] + gap
            left = score[i, j - 1] + gap
            best = diagonal
            if up > best:
                best = up
            if left > best:
                best = left
            score[i, j] = best
    aligned = np.full((2, n + m), -1, dtype=np.int64)
    i, j, k = n, m, 0
    while i > 0 and j > 0:
        if score[i, j] == score[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch):
            i, j = i - 1, j - 1
            aligned[0, k], aligned[1, k] = i, j
        elif score[i, j] == score[i - 1, j] + gap:
            i -= 1
            aligned[0, k] = i
        else:
            j -= 1
            aligned[1, k] = j
        k += 1
    return score[n, m], aligned, k


def dtw(x, y, window):
    n, m = len(x), len(y)
    w = max(window, abs(n - m))
    d = np.full((n + 1, m + 1), np.inf)
    d[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(max(1, i - w), min(m, i + w) + 1):
            cost = abs(x[i - 1] - y[j - 1])
            d[i, j] = cost + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[n, m]


def longest_increasing(x):
    tails = np.empty(len(x), dtype=x.dtype)
    size = 0
    for value in x:
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if tails[middle] < value:
                low = middle + 1
            else:
                high = middle
        tails[low] = value
        if low == size:
            size += 1
    return size


def coin_change(coins, amount):
    ways = np.zeros(amount + 1, dtype=np.int64)
    ways[0] = 1
    fewest = np.full(amount + 1, amount + 1)
    fewest[0] = 0
    for c in coins:
        for v in range(c, amount + 1):
            ways[v] += ways[v - c]
            fewest[v] = min(fewest[v], fewest[v - c] + 1)
    return ways[amount], fewest[amount]


def kmp(text, pattern):
    m = len(pattern)
    failure = np.zeros(m, dtype=np.int64)
    k = 0
    for i in range(1, m):
        while k > 0 and pattern[k] != pattern[i]:
            k = failure[k - 1]
        if pattern[k] == pattern[i]:
            k += 1
        failure[i] = k
    count, q = 0, 0
    for c in text:
        while q > 0 and pattern[q] != c:
            q = failure[q - 1]
        if pattern[q] == c:
            q += 1
        if q == m:
            count += 1
            q = failure[q - 1]
    return count


def jaro(a, b):
    n, m = len(a), len(b)
    reach = max(n, m) // 2 - 1
    seen_a, seen_b = np.zeros(n, np.bool_), np.zeros(m, np.bool_)
    matches = 0
    for i in range(n):
        for j in range(max(0, i - reach), min(m, i + reach + 1)):
            if not seen_b[j] and a[i] == b[j]:
                seen_a[i] = seen_b[j] = True
                matches += 1
                break
    if matches == 0:
        return 0.0
    k, transpositions = 0, 0
    for i in range(n):
        if seen_a[i]:
            while not seen_b[k]:
                k += 1
            if a[i] != b[k]:
                transpositions += 1
            k += 1
    t = transpositions / 2
    return (matches / n + matches / m + (matches - t) / matches) / 3


# ---- parsers


def parse_numbers(text, out):
    count, value, sign, scale, inside = 0, 0.0, 1.0, 0.0, False
    for c in text:
        if 48 <= c <= 57:
            inside = True
            if scale == 0.0:
                value = value * 10.0 + (c - 48)
            else:
                value += (c - 48) * scale
                scale *= 0.1
        elif c == 45:
            sign = -1.0
        elif c == 46:
            scale = 0.1
        elif inside:
            out[count] = sign * value
            count += 1
            value, sign, scale, inside = 0.0, 1.0, 0.0, False
    if inside:
        out[count] = sign * value
        count += 1
    return count


def word_count(text):
    lines = words = 0
    inside = False
    for c in text:
        if c == 10:
            lines += 1
        if c == 32 or c == 10 or c == 9:
            inside = False
        elif not inside:
            inside = True
            words += 1
    return lines, words, len(text)


def utf8_length(data):
    i, n = 0, 0
    while i < data.size:
        b = data[i]
        if b < 0x80:
            i += 1
        elif b >> 5 == 6:
            i += 2
        elif b >> 4 == 14:
            i += 3
        else:
            i += 4
        n += 1
    return n


def base64_encode(data, table):
    out = np.empty((len(data) + 2) // 3 * 4, np.uint8)
    k = 0
    for i in range(0, len(data) - 2, 3):
        word = (int(data[i]) << 16) | (int(data[i + 1]) << 8) | int(data[i + 2])
        for s in range(4):
            out[k + s] = table[(word >> (18 - 6 * s)) & 63]
        k += 4
    return out[:k]


def lz77(data, out, window):
    i, k = 0, 0
    n = len(data)
    while i < n:
        best_length, best_distance = 0, 0
        for j in range(max(0, i - window), i):
            length = 0
            while i + length < n and length < 15 and data[j + length] == data[i + length]:
                length += 1
            if length > best_length:
                best_length, best_distance = length, i - j
        if best_length > 2:
            out[k, 0], out[k, 1] = best_distance, best_length
            i += best_length
        else:
            out[k, 0], out[k, 1] = 0, data[i]
            i += 1
        k += 1
    return k


def brackets(text):
    stack = np.zeros(len(text), np.uint8)
    top, deepest = 0, 0
    for k in range(len(text)):
        c = text[k]
        if c == 40 or c == 91:
            stack[top] = c
            top += 1
            deepest = max(deepest, top)
        elif c == 41 or c == 93:
            if top == 0 or stack[top - 1] != (40 if c == 41 else 91):
                return -1, k
            top -= 1
    return (deepest, len(text)) if top == 0 else (-1, len(text))


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


# ---- images


def median_filter(image):
    h, w = image.shape
    out = image.copy()
    window = np.empty(9, image.dtype)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            k = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    v = image[i + di, j + dj]
                    m = k
                    while m > 0 and window[m - 1] > v:
                        window[m] = window[m - 1]
                        m -= 1
                    window[m] = v
                    k += 1
            out[i, j] = window[4]
    return out


def floyd_steinberg(image):
    a = image.astype(np.float64)
    h, w = a.shape
    for y in range(h):
        for x in range(w):
            old = a[y, x]
            new = 255.0 if old > 127 else 0.0
            a[y, x] = new
            error = old - new
            if x + 1 < w:
                a[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    a[y + 1, x - 1] += error * 3 / 16
                a[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    a[y + 1, x + 1] += error / 16
    return a.astype(np.uint8)


def flood_fill(image, y, x, colour):
    old = image[y, x]
    stack = np.empty((image.size * 4, 2), np.int32)
    stack[0, 0], stack[0, 1] = y, x
    top, filled = 1, 0
    while top:
        top -= 1
        i, j = stack[top, 0], stack[top, 1]
        if i < 0 or j < 0 or i >= image.shape[0] or j >= image.shape[1] or image[i, j] != old:
            continue
        image[i, j] = colour
        filled += 1
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            stack[top, 0], stack[top, 1] = i + di, j + dj
            top += 1
    return filled


def bilinear_resize(image, h, w):
    out = np.empty((h, w), np.float32)
    sy, sx = (image.shape[0] - 1) / (h - 1), (image.shape[1] - 1) / (w - 1)
    for i in range(h):
        for j in range(w):
            y, x = i * sy, j * sx
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, image.shape[0] - 1), min(x0 + 1, image.shape[1] - 1)
            fy, fx = y - y0, x - x0
            top = image[y0, x0] * (1 - fx) + image[y0, x1] * fx
            bottom = image[y1, x0] * (1 - fx) + image[y1, x1] * fx
            out[i, j] = top * (1 - fy) + bottom * fy
    return out


def integral_and_box(image, r):
    h, w = image.shape
    s = np.zeros((h + 1, w + 1))
    for i in range(h):
        line = 0.0
        for j in range(w):
            line += image[i, j]
            s[i + 1, j + 1] = s[i, j + 1] + line
    out = np.zeros_like(image)
    for i in range(h):
        for j in range(w):
            a, b = max(i - r, 0), min(i + r + 1, h)
            c, d = max(j - r, 0), min(j + r + 1, w)
            out[i, j] = (s[b, d] - s[a, d] - s[b, c] + s[a, c]) / ((b - a) * (d - c))
    return out


def hough(edges, thetas):
    h, w = edges.shape
    reach = int(math.hypot(h, w)) + 1
    votes = np.zeros((2 * reach, thetas), np.int32)
    for y in range(h):
        for x in range(w):
            if edges[y, x]:
                for t in range(thetas):
                    angle = math.pi * t / thetas
                    rho = int(round(x * math.cos(angle) + y * math.sin(angle)))
                    votes[rho + reach, t] += 1
    return votes


def rgb_to_hsv(image):
    out = np.empty(image.shape)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            r, g, b = image[i, j]
            high, low = max(r, g, b), min(r, g, b)
            span = high - low
            if span == 0:
                hue = 0.0
            elif high == r:
                hue = ((g - b) / span) % 6
            elif high == g:
                hue = (b - r) / span + 2
            else:
                hue = (r - g) / span + 4
            out[i, j, 0] = hue * 60
            out[i, j, 1] = 0.0 if high == 0 else span / high
            out[i, j, 2] = high
    return out


# ---- numbers


def power_method(a, steps):
    n = a.shape[0]
    v = np.ones(n) / math.sqrt(n)
    value = 0.0
    for _ in range(steps):
        w = a @ v
        value = np.dot(v, w)
        v = w / np.linalg.norm(w)
    return value, v


def jacobi_eigenvalues(a, sweeps):
    a = a.copy()
    n = a.shape[0]
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) > 1e-12:
                    theta = (a[q, q] - a[p, p]) / (2 * a[p, q])
                    t = (1.0 if theta >= 0 else -1.0) / (abs(theta) + math.sqrt(theta * theta + 1))
                    c = 1 / math.sqrt(t * t + 1)
                    s = t * c
                    for k in range(n):
                        x, y = a[k, p], a[k, q]
                        a[k, p], a[k, q] = c * x - s * y, s * x + c * y
                    for k in range(n):
                        x, y = a[p, k], a[q, k]
                        a[p, k], a[q, k] = c * x - s * y, s * x + c * y
    return np.sort(np.diag(a))


def qr_householder(a):
    r = a.copy()
    m, n = r.shape
    for k in range(n):
        x = r[k:, k].copy()
        x[0] += np.sign(x[0]) * np.sqrt(np.sum(x**2)) if x[0] != 0 else np.sqrt(np.sum(x**2))
        norm = np.sum(x * x)
        if norm > 0:
            for j in range(k, n):
                factor = 2 * np.sum(x * r[k:, j]) / norm
                r[k:, j] -= factor * x
    return r


def lu_pivoted(a, b):
    a, x = a.copy(), b.copy()
    n = len(b)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            x[k], x[pivot] = x[pivot], x[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            x[i] -= factor * x[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return x


def nmf(v, w, h, steps):
    for _ in range(steps):
        h *= (w.T @ v) / (w.T @ w @ h + 1e-9)
        w *= (v @ h.T) / (w @ h @ h.T + 1e-9)
    return np.sqrt(np.sum((v - w @ h) ** 2))


def matrix_factorisation_sgd(users, items, ratings, p, q, rate, penalty, epochs):
    for _ in range(epochs):
        for k in range(len(ratings)):
            u, i = users[k], items[k]
            error = ratings[k]
            for f in range(p.shape[1]):
                error -= p[u, f] * q[i, f]
            for f in range(p.shape[1]):
                pf = p[u, f]
                p[u, f] += rate * (error * q[i, f] - penalty * pf)
                q[i, f] += rate * (error * pf - penalty * q[i, f])


def fft_recursive_order(x):
    n = len(x)
    out = np.empty(n, np.complex128)
    bits = 0
    while (1 << bits) < n:
        bits += 1
    for i in range(n):
        r = 0
        for b in range(bits):
            if i & (1 << b):
                r |= 1 << (bits - 1 - b)
        out[r] = x[i]
    size = 2
    while size <= n:
        step = np.exp(-2j * np.pi / size)
        for start in range(0, n, size):
            w = 1.0 + 0.0j
            for k in range(size // 2):
                even, odd = out[start + k], w * out[start + k + size // 2]
                out[start + k] = even + odd
                out[start + k + size // 2] = even - odd
                w *= step
        size *= 2
    return out


def simpson_adaptive(a, b, tolerance):
    stack = np.empty((200, 2))
    stack[0, 0], stack[0, 1] = a, b
    top, total, calls = 1, 0.0, 0
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        mid = 0.5 * (lo + hi)
        q1, q3 = 0.5 * (lo + mid), 0.5 * (mid + hi)
        fa, fb, fm = math.sin(lo * lo), math.sin(hi * hi), math.sin(mid * mid)
        f1, f3 = math.sin(q1 * q1), math.sin(q3 * q3)
        whole = (hi - lo) / 6 * (fa + 4 * fm + fb)
        halves = (hi - lo) / 12 * (fa + 4 * f1 + 2 * fm + 4 * f3 + fb)
        calls += 5
        if abs(halves - whole) < 15 * tolerance * (hi - lo) or top > 190:
            total += halves + (halves - whole) / 15
        else:
            stack[top, 0], stack[top, 1] = lo, mid
            stack[top + 1, 0], stack[top + 1, 1] = mid, hi
            top += 2
    return total, calls


def newton_fractal(n, limit):
    image = np.zeros((n, n), np.int32)
    for i in range(n):
        for j in range(n):
            z = complex(-2 + 4 * i / n, -2 + 4 * j / n)
            k = 0
            while k < limit and abs(z * z * z - 1) > 1e-6:
                if z == 0:
                    break
                z -= (z * z * z - 1) / (3 * z * z)
                k += 1
            image[i, j] = k
    return image


def runge_kutta_fehlberg(x, v, end, tolerance):
    t, h, steps = 0.0, 0.01, 0
    while t < end:
        h = min(h, end - t)
        k1x, k1v = v, (1 - x * x) * v - x
        k2x, k2v = v + h * k1v / 2, (1 - (x + h * k1x / 2) ** 2) * (v + h * k1v / 2) - (x + h * k1x / 2)
        xa, va = x + h * k2x, v + h * k2v
        error = math.sqrt((xa - x - h * k1x) ** 2 + (va - v - h * k1v) ** 2)
        if error <= tolerance:
            t, x, v = t + h, xa, va
            steps += 1
        h *= min(2.0, max(0.3, 0.9 * (tolerance / (error + 1e-300)) ** 0.5))
    return x, v, steps


def collatz_longest(n):
    lengths = np.zeros(n, np.int32)
    lengths[1] = 1
    best = 1
    for i in range(2, n):
        k, steps = i, 0
        while k >= n or lengths[k] == 0:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
        lengths[i] = lengths[k] + steps
        if lengths[i] > lengths[best]:
            best = i
    return best, lengths[best]


# ---- partial differential equations and automata


def wave_1d(u, previous, c, steps):
    n = u.shape[0]
    following = np.zeros(n)
    for _ in range(steps):
        for i in range(1, n - 1):
            following[i] = 2 * u[i] - previous[i] + c * c * (u[i + 1] - 2 * u[i] + u[i - 1])
        previous, u, following = u, following, previous
    return u


def burgers(u, dt, dx, nu, steps):
    for _ in range(steps):
        un = u.copy()
        u[1:-1] = (
            un[1:-1] - un[1:-1] * dt / dx * (un[1:-1] - un[:-2]) + nu * dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        )
        u[0] = u[-2]
        u[-1] = u[1]


def shallow_water(h, u, v, dt, steps):
    n, m = h.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] -= dt * 9.81 * (h[i + 1, j] - h[i - 1, j]) / 2
                v[i, j] -= dt * 9.81 * (h[i, j + 1] - h[i, j - 1]) / 2
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                h[i, j] -= dt * (u[i + 1, j] - u[i - 1, j] + v[i, j + 1] - v[i, j - 1]) / 2


def sor_red_black(u, f, omega, steps):
    n = u.shape[0]
    worst = 0.0
    for _ in range(steps):
        worst = 0.0
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, n - 1, 2):
                    change = omega * ((u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]) / 4 - u[i, j])
                    u[i, j] += change
                    worst = max(worst, abs(change))
    return worst


def rule_110(cells, steps):
    n = len(cells)
    history = np.zeros((steps + 1, n), np.uint8)
    history[0] = cells
    for t in range(steps):
        for i in range(n):
            pattern = 4 * history[t, i - 1] + 2 * history[t, i] + history[t, (i + 1) % n]
            history[t + 1, i] = (110 >> pattern) & 1
    return history


def sandpile(grid):
    h, w = grid.shape
    topples = 0
    unstable = True
    while unstable:
        unstable = False
        for i in range(h):
            for j in range(w):
                if grid[i, j] >= 4:
                    unstable = True
                    topples += 1
                    grid[i, j] -= 4
                    if i > 0:
                        grid[i - 1, j] += 1
                    if i < h - 1:
                        grid[i + 1, j] += 1
                    if j > 0:
                        grid[i, j - 1] += 1
                    if j < w - 1:
                        grid[i, j + 1] += 1
    return topples


def langtons_ant(n, steps):
    grid = np.zeros((n, n), np.bool_)
    x = y = n // 2
    dx, dy = 0, -1
    for _ in range(steps):
        if grid[y, x]:
            dx, dy = dy, -dx
        else:
            dx, dy = -dy, dx
        grid[y, x] = not grid[y, x]
        x, y = (x + dx) % n, (y + dy) % n
    return grid.sum(), x, y


# ---- chance


def metropolis(n, width, seed):
    np.random.seed(seed)
    x, accepted = 0.0, 0
    samples = np.empty(n)
    for i in range(n):
        candidate = x + np.random.uniform(-width, width)
        if np.log(np.random.random()) < (x * x - candidate * candidate) / 2:
            x = candidate
            accepted += 1
        samples[i] = x
    return samples, accepted / n


def gibbs(n, rho, rng):
    out = np.empty((n, 2))
    x = y = 0.0
    s = math.sqrt(1 - rho * rho)
    for i in range(n):
        x = rng.normal(rho * y, s)
        y = rng.normal(rho * x, s)
        out[i, 0], out[i, 1] = x, y
    return out


def gillespie(n0, birth, death, end, rng):
    t, n, events = 0.0, n0, 0
    while t < end and n > 0:
        rate = (birth + death) * n
        t += rng.exponential(1 / rate)
        if rng.random() * (birth + death) < birth:
            n += 1
        else:
            n -= 1
        events += 1
    return n, events


def reservoir(x, k, rng):
    out = x[:k].copy()
    for i in range(k, len(x)):
        j = rng.integers(0, i + 1)
        if j < k:
            out[j] = x[i]
    return out


def simulated_annealing(d, tour, steps, rng):
    n = len(tour)
    t = 1.0
    for _ in range(steps):
        i, j = rng.integers(0, n), rng.integers(0, n)
        if i > j:
            i, j = j, i
        if j - i < 2 or j - i == n - 1:
            continue
        a, b, c, e = tour[i], tour[i + 1], tour[j], tour[(j + 1) % n]
        change = d[a, c] + d[b, e] - d[a, b] - d[c, e]
        if change < 0 or rng.random() < math.exp(-change / t):
            k, m = i + 1, j
            while k < m:
                tour[k], tour[m] = tour[m], tour[k]
                k += 1
                m -= 1
        t *= 0.999
    length = 0.0
    for k in range(n):
        length += d[tour[k], tour[(k + 1) % n]]
    return length


# ---- data


def rolling_min(x, width):
    out = np.empty(len(x) - width + 1)
    queue = np.empty(len(x), np.int64)
    head = tail = 0
    for i in range(len(x)):
        while tail > head and x[queue[tail - 1]] >= x[i]:
            tail -= 1
        queue[tail] = i
        tail += 1
        if queue[head] <= i - width:
            head += 1
        if i >= width - 1:
            out[i - width + 1] = x[queue[head]]
    return out


def group_by_sum(keys, values, groups):
    sums, counts = np.zeros(groups), np.zeros(groups, np.int64)
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    for k, v in zip(keys, values):
        sums[k] += v
        counts[k] += 1
        least[k] = min(least[k], v)
        most[k] = max(most[k], v)
    return sums / np.maximum(counts, 1), least, most


def ewm(x, alpha):
    out = np.empty_like(x)
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = out[i - 1] if np.isnan(x[i]) else alpha * x[i] + (1 - alpha) * out[i - 1]
    return out


def welford(x):
    n, mean, m2 = 0, 0.0, 0.0
    for v in x:
        n += 1
        delta = v - mean
        mean += delta / n
        m2 += delta * (v - mean)
    return mean, m2 / (n - 1)


def pairs_within(points, r):
    count = 0
    for i in range(points.shape[0]):
        for j in range(i + 1, points.shape[0]):
            d = 0.0
            for k in range(points.shape[1]):
                d += (points[i, k] - points[j, k]) ** 2
            if d < r * r:
                count += 1
    return count


def point_in_polygon(x, y, px, py):
    inside = np.zeros(len(x), np.bool_)
    for k in range(len(x)):
        j = len(px) - 1
        for i in range(len(px)):
            if (py[i] > y[k]) != (py[j] > y[k]) and x[k] < (px[j] - px[i]) * (y[k] - py[i]) / (py[j] - py[i]) + px[i]:
                inside[k] = not inside[k]
            j = i
    return inside


def decision_stump(x, y):
    best = (np.inf, -1, 0.0)
    for f in range(x.shape[1]):
        order = np.argsort(x[:, f])
        left, right = 0.0, y.sum()
        square = (y**2).sum()
        for k in range(len(order) - 1):
            left += y[order[k]]
            right -= y[order[k]]
            error = square - left * left / (k + 1) - right * right / (len(order) - k - 1)
            if error < best[0]:
                best = (error, f, (x[order[k], f] + x[order[k + 1], f]) / 2)
    return best


def _random(seed=0):
    return np.random.default_rng(seed)


def _graph(n, degree):
    """starts, neighbours and weights of a graph by rows."""
    r = _random(1)
    edges = np.sort(r.integers(0, n, n * degree))
    starts = np.searchsorted(edges, np.arange(n + 1))
    return starts, r.integers(0, n, n * degree), r.random(n * degree)


def _dag(n, degree):
    r = _random(2)
    a, b = r.integers(0, n, n * degree), r.integers(0, n, n * degree)
    low, high = np.minimum(a, b), np.maximum(a, b)
    low, high = low[low < high], high[low < high]
    order = np.argsort(low, kind="stable")
    return np.searchsorted(low[order], np.arange(n + 1)), high[order]


def _edges(n, m):
    r = _random(3)
    return r.integers(0, n, m), r.integers(0, n, m), r.random(m), n


def _text(n, letters=b"ab (c)[d] 12.5\n"):
    return _random(4).choice(np.frombuffer(letters, np.uint8), n)


def _numbers(n):
    return np.frombuffer(" ".join(f"{v:.3f}" for v in _random(5).normal(size=n)).encode(), np.uint8), np.zeros(n)


def _sudoku():
    text = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
    return (np.array(list(map(int, text))).reshape(9, 9),)


def _symmetric(n):
    a = _random(6).random((n, n))
    return a + a.T


PROGRAMS = {
    # function: (arguments for a size, small size, large size)
    levenshtein_two_rows: (lambda n: (_text(n), _text(n + 7)[7:]), 30, 1000),
    needleman_wunsch: (lambda n: (_text(n, b"ACGT"), _text(n + 5, b"ACGT")[5:], 2, -1, -2), 30, 800),
    dtw: (lambda n: (_random(1).random(n), _random(2).random(n), n // 4), 30, 1000),
    longest_increasing: (lambda n: (_random().permutation(n),), 100, 100000),
    coin_change: (lambda n: (np.array([1, 5, 10, 25, 50]), n), 100, 100000),
    kmp: (lambda n: (_text(n, b"ab"), np.frombuffer(b"abaabab", np.uint8)), 200, 300000),
    jaro: (lambda n: (_text(n), _text(n + 3)[3:]), 30, 3000),
    parse_numbers: (_numbers, 30, 30000),
    word_count: (lambda n: (_text(n),), 200, 300000),
    utf8_length: (lambda n: (np.frombuffer("aé漢😀".encode() * n, np.uint8),), 30, 50000),
    base64_encode: (lambda n: (_random().integers(0, 256, 3 * n).astype(np.uint8), np.arange(64, 128).astype(np.uint8)), 30, 60000),
    lz77: (lambda n: (_text(n, b"abc"), np.zeros((n, 2), np.int64), 64), 100, 4000),
    brackets: (lambda n: (np.frombuffer(b"([x]y)" * n, np.uint8),), 30, 50000),
    bellman_ford: (lambda n: _edges(n, 5 * n), 20, 2000),
    bfs: (lambda n: (*_graph(n, 4)[:2], 0), 50, 100000),
    dijkstra_heap: (lambda n: (*_graph(n, 4), 0), 50, 30000),
    kruskal: (lambda n: _edges(n, 4 * n), 50, 30000),
    prim: (lambda n: (_symmetric(n),), 20, 500),
    topological: (lambda n: _dag(n, 4), 50, 100000),
    triangles: (lambda n: (_symmetric(n) > 1.2,), 25, 300),
    merge_sort: (lambda n: (_random().random(n),), 100, 100000),
    radix_sort: (lambda n: (_random().integers(0, 2**32, n).astype(np.uint32),), 100, 100000),
    insertion_argsort: (lambda n: (_random().random(n),), 50, 2000),
    hash_count: (lambda n: (_random().integers(0, n // 3, n), 2 * n), 100, 100000),
    kd_build_query: (lambda n: (_random().random((n, 2)), _random(1).random((n // 4, 2))), 60, 20000),
    fenwick: (lambda n: (_random().random(n), _random(1).integers(0, n, n)), 60, 50000),
    n_queens: (lambda n: (n,), 5, 8),
    permutations_by_heap: (lambda n: (n,), 5, 9),
    sudoku: (lambda n: _sudoku(), 1, 1),
    pascal_modulo: (lambda n: (n, 7), 30, 1500),
    gray_codes: (lambda n: (n,), 5, 16),
    median_filter: (lambda n: (_random().integers(0, 256, (n, n + 1)).astype(np.uint8),), 8, 200),
    floyd_steinberg: (lambda n: (_random().integers(0, 256, (n, n + 1)).astype(np.uint8),), 8, 300),
    flood_fill: (lambda n: ((_random().random((n, n)) < 0.3).astype(np.int32), 0, 0, 7), 8, 300),
    bilinear_resize: (lambda n: (_random().random((n, n)).astype(np.float32), 2 * n, 3 * n), 6, 150),
    integral_and_box: (lambda n: (_random().random((n, n)), 3), 10, 400),
    hough: (lambda n: (_random().random((n, n)) < 0.1, 2 * n), 8, 90),
    rgb_to_hsv: (lambda n: (_random().random((n, n, 3)),), 6, 300),
    power_method: (lambda n: (_symmetric(n), 50), 6, 200),
    jacobi_eigenvalues: (lambda n: (_symmetric(n), 5), 6, 50),
    qr_householder: (lambda n: (_random().random((n + 4, n)),), 5, 120),
    lu_pivoted: (lambda n: (_random().random((n, n)), _random(1).random(n)), 6, 200),
    nmf: (lambda n: (_random().random((n, n)), _random(1).random((n, 4)), _random(2).random((4, n)), 20), 8, 150),
    matrix_factorisation_sgd: (lambda n: (_random().integers(0, 20, n), _random(1).integers(0, 30, n), _random(2).random(n), _random(3).random((20, 8)), _random(4).random((30, 8)), 0.01, 0.02, 3), 40, 20000),
    fft_recursive_order: (lambda n: (_random().random(n) + 0j,), 16, 16384),
    simpson_adaptive: (lambda n: (0.0, float(n), 1e-8), 2, 12),
    newton_fractal: (lambda n: (n, 30), 6, 120),
    runge_kutta_fehlberg: (lambda n: (2.0, 0.0, float(n), 1e-6), 1, 20),
    collatz_longest: (lambda n: (n,), 50, 100000),
    wave_1d: (lambda n: (_random().random(n), _random(1).random(n), 0.5, 40), 12, 10000),
    burgers: (lambda n: (_random().random(n), 0.001, 0.1, 0.07, 100), 12, 2000),
    shallow_water: (lambda n: (1 + _random().random((n, n)), np.zeros((n, n)), np.zeros((n, n)), 0.001, 10), 8, 150),
    sor_red_black: (lambda n: (_random().random((n, n)), np.zeros((n, n)), 1.5, 20), 8, 150),
    rule_110: (lambda n: ((_random().random(n) < 0.5).astype(np.uint8), n), 16, 500),
    sandpile: (lambda n: (_random().integers(0, 7, (n, n)),), 8, 60),
    langtons_ant: (lambda n: (n, 100 * n), 10, 1000),
    metropolis: (lambda n: (n, 1.0, 3), 50, 50000),
    gibbs: (lambda n: (n, 0.6, _random()), 50, 30000),
    gillespie: (lambda n: (n, 1.0, 1.01, 3.0, _random()), 10, 5000),
    reservoir: (lambda n: (np.arange(n), 10, _random()), 60, 100000),
    simulated_annealing: (lambda n: (_symmetric(n), np.arange(n), 50 * n, _random()), 12, 300),
    rolling_min: (lambda n: (_random().random(n), 10), 60, 200000),
    group_by_sum: (lambda n: (_random().integers(0, 9, n), _random().random(n), 9), 60, 100000),
    ewm: (lambda n: (np.where(_random().random(n) < 0.1, np.nan, 1.5), 0.3), 60, 200000),
    welford: (lambda n: (_random().random(n),), 60, 200000),
    pairs_within: (lambda n: (_random().random((n, 3)), 0.2), 20, 1000),
    point_in_polygon: (lambda n: (_random().random(n), _random(1).random(n), _random(2).random(12), _random(3).random(12)), 30, 20000),
    decision_stump: (lambda n: (_random().random((n, 4)), _random(1).random(n)), 30, 3000),
}  # fmt: skip
