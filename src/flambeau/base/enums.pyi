"""Written by tools/stubs.py."""

# ruff: noqa
# mypy: ignore-errors

import enum

class Field(enum.IntEnum):
    OPERAND = 0
    RESULT = 1
    INTEGER = 2
    FLAG = 3
    REAL = 4
    CHOICE = 5
    ARRAY = 6
    LIST = 7
    MESSAGE = 8

class Element(enum.IntEnum):
    F32 = 0
    F64 = 1
    C64 = 2
    C128 = 3
    I64 = 4
    I32 = 5
    I16 = 6
    I8 = 7
    U8 = 8
    F16 = 9
    BF16 = 10

class Library(enum.IntEnum):
    NONE = 0
    BLAS = 1
    LAPACK = 2
    UFUNC = 3

class Order(enum.IntEnum):
    WHOLE = 0
    FIRST = 1
    RANK = 2
    MEDIAN = 3
    NANMEDIAN = 4

class Conv(enum.IntEnum):
    FORWARD = 0
    INPUT = 1
    WEIGHT = 2

class Way(enum.IntEnum):
    USUAL = 0
    GATHER = 1
    WINOGRAD = 2
    SHIFT = 3
    TAPS = 4
    DEPTHWISE = 5
    POINT = 6
    PIXELS = 7

class Product(enum.IntEnum):
    USUAL = 0
    OWN = 1
    LIBRARY = 2
    PANELS = 3
    FEW = 4

class Draw(enum.IntEnum):
    UNIFORM = 0
    NORMAL = 1
    SEQUENCE = 2
    BERNOULLI = 3

class Distribution(enum.IntEnum):
    GAMMA = 0
    POISSON = 1
    BINOMIAL = 2

class Transform(enum.IntEnum):
    FORWARD = 0
    INVERSE = 1
    FROM_REAL = 2
    FROM_REAL_WHOLE = 3
    TO_REAL = 4

class Lapack(enum.IntEnum):
    LU = 0
    SOLVE = 1
    LU_SOLVE = 2
    CHOLESKY = 3
    CHOLESKY_INVERSE = 4
    TRIANGULAR = 5
    QR = 6
    EIGH = 7
    SVD = 8
    EIG = 9
    LSTSQ = 10
    REFLECTORS = 11
    REFLECTED = 12

class Recurrence(enum.IntEnum):
    LSTM = 0
    GRU = 1
    TANH = 2
    RELU = 3

class Sign(enum.IntEnum):
    EQUAL = 0
    UNEQUAL = 1
    AT_LEAST = 2

class Sharing(enum.IntEnum):
    NONE = 0
    SOURCE = 1
    MADE = 2

class Polynomial(enum.IntEnum):
    CHEBYSHEV_T = 0
    CHEBYSHEV_U = 1
    CHEBYSHEV_V = 2
    CHEBYSHEV_W = 3
    SHIFTED_T = 4
    SHIFTED_U = 5
    SHIFTED_V = 6
    SHIFTED_W = 7
    HERMITE_H = 8
    HERMITE_HE = 9
    LAGUERRE = 10
    LEGENDRE = 11

class Segment(enum.IntEnum):
    SUM = 0
    MEAN = 1
    MIN = 2
    MAX = 3
    PROD = 4

class Slot(enum.IntEnum):
    INPUT = 0
    ARENA = 1
    OUTPUT = 2
    CONSTANT = 3
    OBJECT = 4
    VALUE = 5
    LOCAL = 6
    OWN = 7

class Step(enum.IntEnum):
    KERNEL = 0
    GEMM = 1
    NATIVE = 2
    CALL = 3
    ROWS = 4
    BIND = 5
    TABLE = 6

class Out(enum.IntEnum):
    SLOT = 0
    INPUT = 1
    CONSTANT = 2
    NUMBER = 3
    VALUE = 4

class Form(enum.IntEnum):
    ARRAY = 0
    SCALAR = 1
    NUMBER = 2

class Bind(enum.IntEnum):
    SIZE = 0
    STRIDE = 1
    VALUE = 2

class Op(enum.IntEnum):
    MOVE = 0
    ADD = 1
    MUL = 2
    DIV = 3
    MOD = 4
    MIN = 5
    MAX = 6
    AND = 7
    OR = 8
    XOR = 9
    SHL = 10
    SHR = 11
    POW = 12
    FLOAT = 13
    FADD = 14
    FSUB = 15
    FMUL = 16
    FDIV = 17
    FFLOOR = 18
    FSQRT = 19
    FNEG = 20
    TRUNC = 21
