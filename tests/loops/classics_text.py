"""Strings, sequences and texts: dynamic programming, matching, parsing."""

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
