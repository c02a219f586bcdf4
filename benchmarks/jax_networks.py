"""The networks of networks.py as one writes them in JAX: functions of a dictionary of weights (named as the modules name them) and the input.

``PORTS[name](weights, x)`` -> output. ``step(name, arrays)`` -> a call that makes one compiled step of SGD, or one token, and returns the loss
or its score; the weights of the last step are donated.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

PORTS = {}


def port(*names, **options):
    def register(fn):
        for name in names:
            PORTS[name] = lambda w, x: fn(w, x, **options)
        return fn

    return register


# ---- layers -------------------------------------------------------------------------------------------------------------------
def linear(w, name, x):
    y = x @ w[f"{name}.weight"].T
    return y + w[f"{name}.bias"] if f"{name}.bias" in w else y


def conv(w, name, x, stride=1, pad=0, groups=1):
    kernel = w[f"{name}.weight"]
    dims = kernel.ndim - 2
    letters = "DHW"[3 - dims :]
    y = lax.conv_general_dilated(
        x, kernel, (stride,) * dims, ((pad, pad),) * dims, feature_group_count=groups,
        dimension_numbers=(f"NC{letters}", f"OI{letters}", f"NC{letters}"),
    )  # fmt: skip
    return y + w[f"{name}.bias"].reshape(-1, *[1] * dims) if f"{name}.bias" in w else y


def conv_transpose(w, name, x, stride):
    kernel = jnp.flip(w[f"{name}.weight"], (2, 3))
    side = kernel.shape[2] - 1
    y = lax.conv_general_dilated(
        x, kernel, (1, 1), ((side, side),) * 2, lhs_dilation=(stride,) * 2, dimension_numbers=("NCHW", "IOHW", "NCHW")
    )
    return y + w[f"{name}.bias"][:, None, None]


def scaled(w, name, x, axes, shape):
    mean = x.mean(axes, keepdims=True)
    var = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5), w[f"{name}.weight"].reshape(shape), w[f"{name}.bias"].reshape(shape)


def layer_norm(w, name, x):
    y, weight, bias = scaled(w, name, x, -1, (-1,))
    return y * weight + bias


def batch_norm(w, name, x):
    y, weight, bias = scaled(w, name, x, (0, 2, 3), (-1, 1, 1))
    return y * weight + bias


def group_norm(w, name, x, groups):
    n, c, h, v = x.shape
    y, weight, bias = scaled(w, name, x.reshape(n, groups, -1), -1, (-1, 1, 1))
    return y.reshape(n, c, h, v) * weight + bias


def pool(x, side, stride, pad=0, mean=False):
    how = (1, 1, side, side), (1, 1, stride, stride), ((0, 0), (0, 0), (pad, pad), (pad, pad))
    if mean:
        return lax.reduce_window(x, 0.0, lax.add, *how) / side**2
    return lax.reduce_window(x, -jnp.inf, lax.max, *how)


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def heads_of(x, heads):
    n, t, width = x.shape
    return x.reshape(n, t, heads, width // heads)


def attend(q, k, v, causal=False):
    return jax.nn.dot_product_attention(q, k, v, is_causal=causal)


def block(w, name, x, heads, causal):
    n, t, width = x.shape
    y = linear(w, f"{name}.attention.qkv", layer_norm(w, f"{name}.ln1", x))
    q, k, v = (heads_of(z, heads) for z in jnp.split(y, 3, -1))
    x = x + linear(w, f"{name}.attention.proj", attend(q, k, v, causal).reshape(n, t, width))
    return x + linear(w, f"{name}.mlp.2", gelu(linear(w, f"{name}.mlp.0", layer_norm(w, f"{name}.ln2", x))))


def trunk(w, x, layers, heads, causal=False, mean=True):
    for i in range(layers):
        x = block(w, f"trunk.blocks.{i}", x, heads, causal)
    x = layer_norm(w, "trunk.norm", x)
    return linear(w, "trunk.head", x.mean(1) if mean else x)


# ---- networks -----------------------------------------------------------------------------------------------------------------
@port("MLP 784-1024-512-10, batch 256")
def mlp(w, x):
    return linear(w, "4", jax.nn.relu(linear(w, "2", jax.nn.relu(linear(w, "0", x)))))


@port("LeNet, batch 64")
def lenet(w, x):
    x = pool(jax.nn.relu(conv(w, "0", x, pad=2)), 2, 2)
    x = pool(jax.nn.relu(conv(w, "3", x)), 2, 2)
    x = x.reshape(len(x), -1)
    return linear(w, "11", jax.nn.relu(linear(w, "9", jax.nn.relu(linear(w, "7", x)))))


@port("GPT 4x256, 8x128 tokens")
def gpt(w, ids):
    x = w["tokens.weight"][ids] + w["places.weight"]
    return trunk(w, x, 4, 8, causal=True, mean=False).reshape(-1, 256)


@port("ViT 4x192, 8x64 tokens")
def vit(w, x):
    x = conv(w, "patches", x, 4)
    return trunk(w, x.reshape(*x.shape[:2], -1).swapaxes(1, 2) + w["places"], 4, 3)


@port("Whisper encoder 3x192, 4x256 frames")
def whisper(w, x):
    x = gelu(conv(w, "c2", gelu(conv(w, "c1", x, pad=1)), 2, 1))
    return trunk(w, x.swapaxes(1, 2) + w["places"], 3, 3)


STRIDES = (1, 1, 2, 1, 2, 1, 2, 1)


@port("PreActResNet18, 8x3x32x32", squeeze=False)
@port("SENet18, 8x3x32x32", squeeze=True)
def residual(w, x, squeeze):
    relu = jax.nn.relu
    x = conv(w, "0", x, pad=1)
    for i, stride in enumerate(STRIDES, 1):
        y = relu(batch_norm(w, f"{i}.n1", x))
        rest = conv(w, f"{i}.short", y, stride) if f"{i}.short.weight" in w else x
        y = conv(w, f"{i}.c1", y, stride, 1)
        y = conv(w, f"{i}.c2", relu(batch_norm(w, f"{i}.n2", y)), pad=1)
        if squeeze:
            s = y.mean((2, 3), keepdims=True)
            y = y * jax.nn.sigmoid(conv(w, f"{i}.up", relu(conv(w, f"{i}.down", s))))
        x = y + rest
    return linear(w, "11", pool(x, 4, 4, mean=True).reshape(len(x), -1))


@port("ResNet-18, 4x3x112x112")
def resnet18(w, x):
    relu = jax.nn.relu
    x = pool(relu(batch_norm(w, "1", conv(w, "0", x, 2, 3))), 3, 2, 1)
    for i, stride in enumerate(STRIDES, 4):
        y = relu(batch_norm(w, f"{i}.n1", conv(w, f"{i}.c1", x, stride, 1)))
        y = batch_norm(w, f"{i}.n2", conv(w, f"{i}.c2", y, pad=1))
        if f"{i}.short.0.weight" in w:
            x = batch_norm(w, f"{i}.short.1", conv(w, f"{i}.short.0", x, stride))
        x = relu(y + x)
    return linear(w, "14", x.mean((2, 3)))


@port("VGG11, batch 16")
def vgg11(w, x):
    i = 0
    for o in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
        if o == "M":
            x, i = pool(x, 2, 2), i + 1
        else:
            x, i = jax.nn.relu(batch_norm(w, str(i + 1), conv(w, str(i), x, pad=1))), i + 3
    return linear(w, str(i + 1), x.reshape(len(x), -1))


@port("EfficientNet-B0 (CIFAR), 8x3x32x32")
def efficientnet(w, x):
    silu = jax.nn.silu
    x, i = silu(batch_norm(w, "1", conv(w, "0", x, pad=1))), 3
    stages = ((1, 1, 3, 1), (6, 2, 3, 2), (6, 2, 5, 2), (6, 3, 3, 2), (6, 3, 5, 1), (6, 4, 5, 2), (6, 1, 3, 1))
    for expansion, count, kernel, first in stages:
        for k in range(count):
            stride, n = first if k == 0 else 1, str(i)
            y = silu(batch_norm(w, f"{n}.n1", conv(w, f"{n}.c1", x))) if expansion != 1 else x
            y = silu(batch_norm(w, f"{n}.n2", conv(w, f"{n}.c2", y, stride, kernel // 2, y.shape[1])))
            s = y.mean((2, 3), keepdims=True)
            y = y * jax.nn.sigmoid(conv(w, f"{n}.up", silu(conv(w, f"{n}.down", s))))
            y = batch_norm(w, f"{n}.n3", conv(w, f"{n}.c3", y))
            x, i = y + x if y.shape == x.shape and stride == 1 else y, i + 1
    return linear(w, str(i + 2), x.mean((2, 3)))


@port("U-Net, 4x3x64x64")
def unet(w, x):
    def twice(name, x):
        for i in (0, 3):
            x = jax.nn.relu(batch_norm(w, f"{name}.{i + 1}", conv(w, f"{name}.{i}", x, pad=1)))
        return x

    a = twice("d1", x)
    b = twice("d2", pool(a, 2, 2))
    c = twice("d3", pool(b, 2, 2))
    b = twice("c2", jnp.concatenate([conv_transpose(w, "u2", c, 2), b], 1))
    a = twice("c1", jnp.concatenate([conv_transpose(w, "u1", b, 2), a], 1))
    return conv(w, "head", a).mean((2, 3))


@port("BERT encoder 4x256, 8x128 tokens")
def bert(w, ids):
    x = layer_norm(w, "norm", w["tokens.weight"][ids] + w["places.weight"])
    for i in range(4):
        n = f"layers.layers.{i}"
        y = x @ w[f"{n}.self_attn.in_proj_weight"].T + w[f"{n}.self_attn.in_proj_bias"]
        q, k, v = (heads_of(z, 8) for z in jnp.split(y, 3, -1))
        x = layer_norm(w, f"{n}.norm1", x + linear(w, f"{n}.self_attn.out_proj", attend(q, k, v).reshape(x.shape)))
        x = layer_norm(w, f"{n}.norm2", x + linear(w, f"{n}.linear2", gelu(linear(w, f"{n}.linear1", x))))
    return linear(w, "head", x).reshape(-1, 1024)


@port("MLP-Mixer 4x192, 8x64 patches")
def mixer(w, x):
    x = conv(w, "patches", x, 4)
    x = x.reshape(*x.shape[:2], -1).swapaxes(1, 2)
    for i in range(4):
        n = f"blocks.{i}"
        y = layer_norm(w, f"{n}.n1", x).swapaxes(1, 2)
        x = x + linear(w, f"{n}.across.2", gelu(linear(w, f"{n}.across.0", y))).swapaxes(1, 2)
        x = x + linear(w, f"{n}.along.2", gelu(linear(w, f"{n}.along.0", layer_norm(w, f"{n}.n2", x))))
    return linear(w, "head", layer_norm(w, "norm", x).mean(1))


@port("LSTM language model, 16x64 tokens")
def lstm(w, ids):
    x = w["tokens.weight"][ids].swapaxes(0, 1)
    x = x @ w["lstm.weight_ih_l0"].T + w["lstm.bias_ih_l0"] + w["lstm.bias_hh_l0"]

    def cell(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x + h @ w["lstm.weight_hh_l0"].T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], x.shape[2] // 4), x.dtype)
    return linear(w, "head", lax.scan(cell, (zero, zero), x)[1].swapaxes(0, 1)).reshape(-1, 256)


@port("diffusion U-Net, 4x3x32x32")
def diffusion(w, x):
    silu = jax.nn.silu

    def part(name, x, t):
        y = conv(w, f"{name}.c1", silu(group_norm(w, f"{name}.n1", x, 8)), pad=1)
        y = y + linear(w, f"{name}.time", t)[:, :, None, None]
        return conv(w, f"{name}.c2", silu(group_norm(w, f"{name}.n2", y, 8)), pad=1) + conv(w, f"{name}.short", x)

    def up(x):
        return x.repeat(2, 2).repeat(2, 3)

    angles = (jnp.arange(4) * 10.0)[:, None] * jnp.exp(jnp.arange(16) * (-9.2 / 16))[None]
    t = linear(w, "time.0", jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], 1))
    t = linear(w, "time.2", silu(t))
    a = part("b1", conv(w, "first", x, pad=1), t)
    b = part("b2", conv(w, "d1", a, 2, 1), t)
    c = part("b3", conv(w, "d2", b, 2, 1), t)
    q, k, v = (z.reshape(*z.shape[:2], -1).swapaxes(1, 2)[:, :, None] for z in jnp.split(conv(w, "qkv", c), 3, 1))
    c = c + conv(w, "proj", attend(q, k, v)[:, :, 0].swapaxes(1, 2).reshape(c.shape))
    b = part("u2", jnp.concatenate([up(c), b], 1), t)
    a = part("u1", jnp.concatenate([up(b), a], 1), t)
    return conv(w, "last", silu(a), pad=1).mean((2, 3))


DECODER = "GPT 4x256, one more token beside 128"


def decoder(w, cache, token):
    x = w["tokens.weight"][token]
    for i in range(4):
        n = f"blocks.{i}"
        y = linear(w, f"{n}.qkv", layer_norm(w, f"{n}.n1", x))
        q, k, v = (heads_of(z, 8) for z in jnp.split(y, 3, -1))
        k, v = (jnp.concatenate([old.swapaxes(1, 2), new], 1) for old, new in ((cache[i, 0], k), (cache[i, 1], v)))
        x = x + linear(w, f"{n}.proj", attend(q, k, v).reshape(x.shape))
        x = x + linear(w, f"{n}.down", gelu(linear(w, f"{n}.up", layer_norm(w, f"{n}.n2", x))))
    return linear(w, "head", x)[0, -1].max()


def step(name: str, arrays: dict):
    weights = {k[6:]: jnp.array(v) for k, v in arrays.items() if k.startswith("model.") and v.dtype.kind == "f"}
    x, target = jnp.array(arrays["x"]), jnp.array(arrays["target"])
    if name == DECODER:
        run = jax.jit(decoder)
        return lambda: run(weights, x, target).block_until_ready()
    network = PORTS[name]

    def loss(w, x, target):
        scores = jax.nn.log_softmax(network(w, x))
        return -jnp.take_along_axis(scores, target[:, None], 1).mean()

    def update(w, x, target):
        value, gradients = jax.value_and_grad(loss)(w, x, target)
        return value, {k: v - 1e-3 * gradients[k] for k, v in w.items()}

    run = jax.jit(update, donate_argnums=0)

    def call():
        nonlocal weights
        value, weights = run(weights, x, target)
        jax.block_until_ready(weights)
        return value

    return call
