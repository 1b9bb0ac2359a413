"""The kernels of `layers`, which says what they compute; imported only where one of them runs.

A backward kernel recomputes what is cheaper to compute than to store, and writes the gradients of all affine maps'
outputs: products over tokens then make the weights' gradients of them. Sums over tokens are written per program.
"""

from typing import no_type_check

import triton
import triton.language as tl

from vcnef.kernels.modulation_triton import mix  # noqa: F401, launched by name like those below
from vcnef.kernels.parts_triton import (
    add,
    cast,
    columns,
    dot,
    gelu,
    inside,
    matrix,
    pairs,
    positive,
    product,
    put,
    relu,
    reverse,
    scaled,
    sums,
    times,
    vector,
    weight,
    within_heads,
)

# The MLP layer.


@triton.jit(do_not_specialize=["count", "eps"])
@no_type_check
def mlp(
    tokens,
    out,
    standard,
    inverse,
    widen,
    narrow,
    layer_norm,
    count,
    eps,
    D: tl.constexpr,
    HIDDEN: tl.constexpr,
    GELU: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    x = matrix(tokens + start * D, rows, feature, left, D)
    total = add(cast(x, tl.float32), vector(narrow.bias, feature, D))
    for first in range(0, HIDDEN, BLOCK_H):
        chunk = (first + tl.arange(0, BLOCK_H),)
        hidden = product(x, widen, feature, chunk, D, HIDDEN)
        hidden = gelu(hidden) if GELU else relu(hidden)
        total = dot(hidden, weight(narrow.weight, chunk, feature, HIDDEN, D), total)
    _put_norm(total, out + start * D, standard + start * D, inverse + start, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["count"])
@no_type_check
def mlp_backward(
    grad,
    tokens,
    standard,
    inverse,
    widen,
    narrow,
    layer_norm,
    grad_tokens,
    grad_out,
    hidden,
    grad_hidden,
    token_sums,
    count,
    D: tl.constexpr,
    HIDDEN: tl.constexpr,
    GELU: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    start = program * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), count - start
    operands = widen.weight.dtype.element_ty
    total = _norm_backward(
        grad + start * D, standard + start * D, inverse + start, layer_norm, token_sums + program * (3 * D + HIDDEN),
        rows, left, feature, D,
    )  # fmt: skip
    grad_operand = cast(total, operands)
    put(grad_out + start * D, grad_operand, rows, feature, left, D)
    x = matrix(tokens + start * D, rows, feature, left, D)
    for first in range(0, HIDDEN, BLOCK_H):
        chunk = (first + tl.arange(0, BLOCK_H),)
        widening = weight(widen.weight, feature, chunk, D, HIDDEN)
        before = add(dot(x, widening), vector(widen.bias, chunk, HIDDEN))
        after = gelu(before) if GELU else relu(before)
        put(hidden + start * HIDDEN, after, rows, chunk, left, HIDDEN)
        back = dot(grad_operand, reverse(weight(narrow.weight, chunk, feature, HIDDEN, D)))
        back = times(back, gelu_slope(before) if GELU else relu_slope(before))
        put(grad_hidden + start * HIDDEN, back, rows, chunk, left, HIDDEN)
        put_sums(token_sums + program * (3 * D + HIDDEN) + 3 * D, back, chunk, HIDDEN)
        total = dot(back, reverse(widening), total)
    put(grad_tokens + start * D, total, rows, feature, left, D)


# The modulation layer. A factor that is given has one row of tokens for all times, as has `tokens` then.


@triton.jit(do_not_specialize=["frames", "points", "eps"])
@no_type_check
def modulation(
    tokens,
    factor,
    field,
    out,
    standard,
    inverse,
    scale,
    out_map,
    layer_norm,
    frames,
    points,
    eps,
    D: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    tiles = tl.cdiv(points, BLOCK_S)
    row = (tl.program_id(0) // tiles).to(tl.int64)
    first = tl.program_id(0) % tiles * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), points - first
    at = (row * points + first) * D
    token_at = ((row // frames) * points + first) * D if factor is not None else at
    field_at = ((row % frames) * points + first) * D if SHARED_FIELD else at

    y = matrix(tokens + token_at, rows, feature, left, D)
    c = matrix(field + field_at, rows, feature, left, D)
    if factor is not None:
        f = matrix(factor + token_at, rows, feature, left, D)
    else:
        f = positive(product(y, scale, feature, feature, D, D))
    modulated = times(cast(f, tl.float32), cast(c, tl.float32))
    total = add(cast(y, tl.float32), product(modulated, out_map, feature, feature, D, D))
    where = row * points + first
    _put_norm(total, out + at, standard + at, inverse + where, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["frames", "points"])
@no_type_check
def modulation_backward(
    grad,
    tokens,
    factor,
    field,
    standard,
    inverse,
    scale,
    out_map,
    layer_norm,
    grad_tokens,
    grad_factor,
    grad_field,
    grad_total,
    modulated,
    token_sums,
    frames,
    points,
    D: tl.constexpr,
    SHARED_FIELD: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """`grad_factor` is the gradient of a factor that is given, otherwise of its logits."""
    tiles = tl.cdiv(points, BLOCK_S)
    program = tl.program_id(0).to(tl.int64)
    row, first = program // tiles, program % tiles * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), points - first
    operands = out_map.weight.dtype.element_ty
    where = row * points + first
    at = where * D
    token_at = ((row // frames) * points + first) * D if factor is not None else at
    field_at = ((row % frames) * points + first) * D if SHARED_FIELD else at
    total = _norm_backward(
        grad + at, standard + at, inverse + where, layer_norm, token_sums + program * 4 * D, rows, left, feature, D
    )
    total_operand = cast(total, operands)
    put(grad_total + at, total_operand, rows, feature, left, D)
    back = dot(total_operand, reverse(weight(out_map.weight, feature, feature, D, D)))

    c = cast(matrix(field + field_at, rows, feature, left, D), tl.float32)
    if factor is not None:
        f = cast(matrix(factor + token_at, rows, feature, left, D), tl.float32)
    else:
        y = matrix(tokens + token_at, rows, feature, left, D)
        scaling = weight(scale.weight, feature, feature, D, D)
        f = positive(add(dot(y, scaling), vector(scale.bias, feature, D)))
    put(modulated + at, times(f, c), rows, feature, left, D)
    put(grad_field + at, times(back, f), rows, feature, left, D)
    back = times(back, c)
    if factor is None:
        back = times(back, positive_slope(f))
        put_sums(token_sums + program * 4 * D + 3 * D, back, feature, D)
        total = dot(back, reverse(scaling), total)
        put(grad_tokens + at, total, rows, feature, left, D)
    put(grad_factor + at, back, rows, feature, left, D)


# The attention layer; what tokens need to know of each other is `modulation_triton.mix`.


@triton.jit(do_not_specialize=["points", "eps"])
@no_type_check
def attention(
    tokens,
    mixing,
    key_mean,
    extra,
    out,
    standard,
    inverse,
    query,
    join_bias,
    layer_norm,
    heads,
    points,
    eps,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    tiles = tl.cdiv(points, BLOCK_S)
    row = (tl.program_id(0) // tiles).to(tl.int64)
    first = tl.program_id(0) % tiles * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), points - first
    where = row * points + first
    at = where * D
    x = matrix(tokens + at, rows, feature, left, D)
    queries = positive(product(x, query, feature, feature, D, D))
    # A sum within each head, as a product with ones there.
    normaliser = dot(times(queries, vector(key_mean + row * D, feature, D)), weight(heads, feature, feature, D, D))
    weights = times(queries, _inverse(normaliser, _floor(feature, points, D)))
    total = dot(weights, weight(mixing + row * D * D, feature, feature, D, D), cast(x, tl.float32))
    total = add(total, vector(join_bias, feature, D))
    if extra is not None:
        total = add(total, cast(matrix(extra + at, rows, feature, left, D), tl.float32))
    _put_norm(total, out + at, standard + at, inverse + where, layer_norm, rows, left, feature, eps, D)


@triton.jit(do_not_specialize=["points"])
@no_type_check
def attention_backward(
    grad,
    tokens,
    mixing,
    key_mean,
    standard,
    inverse,
    query,
    layer_norm,
    heads,
    grad_total,
    grad_query,
    normalised,
    token_sums,
    mean_sums,
    points,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """As far as M and k̄; `normalised` is Q / (Q (k̄ ∘ m)), of which the gradient of M is made."""
    tiles = tl.cdiv(points, BLOCK_S)
    program = tl.program_id(0).to(tl.int64)
    row, first = program // tiles, program % tiles * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), points - first
    operands = query.weight.dtype.element_ty
    where = row * points + first
    at = where * D
    total = _norm_backward(
        grad + at, standard + at, inverse + where, layer_norm, token_sums + program * 4 * D, rows, left, feature, D
    )
    total = cast(total, operands)
    put(grad_total + at, total, rows, feature, left, D)

    x = matrix(tokens + at, rows, feature, left, D)
    queries = positive(product(x, query, feature, feature, D, D))
    mean, ones = vector(key_mean + row * D, feature, D), weight(heads, feature, feature, D, D)
    inverse_sum = _inverse(dot(times(queries, mean), ones), _floor(feature, points, D))
    weights = times(queries, inverse_sum)
    put(normalised + at, weights, rows, feature, left, D)
    back = times(dot(total, reverse(weight(mixing + row * D * D, feature, feature, D, D))), inverse_sum)
    # The gradient of the normaliser is the same for all features of a head.
    shared = dot(times(back, weights), ones)
    put_sums(mean_sums + program * D, scaled(times(queries, shared), -1.0), feature, D)
    back = add(back, scaled(times(mean, shared), -1.0))
    back = times(back, positive_slope(queries))
    put(grad_query + at, back, rows, feature, left, D)
    put_sums(token_sums + program * 4 * D + 3 * D, back, feature, D)


@triton.jit(do_not_specialize=["points"])
@no_type_check
def mixing_backward(
    grad_mixing,
    grad_key_mean,
    value,
    join_weight,
    grad_state,
    grad_gram,
    points,
    D: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """One program per sample and time, from the gradients of M and k̄ to those of Kᵀ X and of the sum of K."""
    row = tl.program_id(0).to(tl.int64)
    feature, whole = columns(D), tl.arange(0, BLOCK_S)
    share = 1.0 / points
    grad = matrix(grad_mixing + row * D * D, whole, feature, D, D)
    state = dot(grad, reverse(weight(join_weight, feature, feature, D, D)))
    state = within_heads(state, whole, feature, HEAD)
    put(grad_state + row * D * D, state, whole, feature, D, D)
    gram = dot(state, reverse(weight(value.weight, feature, feature, D, D)))
    put(grad_gram + row * D * D, scaled(gram, share), whole, feature, D, D)
    mean = tl.load(grad_key_mean + row * D + whole, mask=whole < D, other=0.0)
    mean += sums(times(state, vector(value.bias, feature, D)))
    tl.store(grad_key_mean + row * D + whole, mean * share, mask=whole < D)


@triton.jit(do_not_specialize=["points"])
@no_type_check
def keys_backward(
    tokens,
    grad_gram,
    grad_key_sum,
    grad_total,
    grad_query,
    query_weight,
    key,
    grad_tokens,
    grad_key,
    key_sums,
    points,
    D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """Through Kᵀ X and the sum of K, and with them all of the tokens' gradient."""
    tiles = tl.cdiv(points, BLOCK_S)
    program = tl.program_id(0).to(tl.int64)
    row, first = program // tiles, program % tiles * BLOCK_S
    rows, feature, left = tl.arange(0, BLOCK_S), columns(D), points - first
    at = (row * points + first) * D
    x = matrix(tokens + at, rows, feature, left, D)
    gram = weight(grad_gram + row * D * D, feature, feature, D, D)
    key_weight = weight(key.weight, feature, feature, D, D)
    keys = positive(add(dot(x, key_weight), vector(key.bias, feature, D)))
    back = add(dot(x, reverse(gram)), vector(grad_key_sum + row * D, feature, D))
    back = times(back, positive_slope(keys))
    # Tokens beyond the last have keys, but no gradient.
    back = [tl.where((rows < left)[:, None], each, 0.0) for each in back]
    put(grad_key + at, back, rows, feature, left, D)
    put_sums(key_sums + program * D, back, feature, D)
    total = cast(matrix(grad_total + at, rows, feature, left, D), tl.float32)
    query_back = reverse(weight(query_weight, feature, feature, D, D))
    total = dot(matrix(grad_query + at, rows, feature, left, D), query_back, total)
    total = dot(back, reverse(key_weight), total)
    total = dot(keys, gram, total)
    put(grad_tokens + at, total, rows, feature, left, D)


# What they share.


@triton.jit
@no_type_check
def _put_norm(x, out, standard, inverse, affine, rows, left, feature, eps, D: tl.constexpr):
    """LN(x), and what its gradient needs: x with mean 0 and variance 1, and 1 over the deviation."""
    mean = sums(x) * (1.0 / D)
    centred = _only_inside([each - mean[:, None] for each in x], feature, D)
    scale = tl.rsqrt(sums(times(centred, centred)) * (1.0 / D) + eps)
    unit = [each * scale[:, None] for each in centred]
    tl.store(inverse + rows, scale, mask=rows < left)
    put(standard, unit, rows, feature, left, D)
    affine_out = add(times(unit, vector(affine.weight, feature, D)), vector(affine.bias, feature, D))
    put(out, affine_out, rows, feature, left, D)


@triton.jit
@no_type_check
def _norm_backward(grad, standard, inverse, affine, norm_sums, rows, left, feature, D: tl.constexpr):
    """The gradient of LN's input; also the sums over tokens that are the gradients of its scale and shift, and of a
    bias before it."""
    g = cast(matrix(grad, rows, feature, left, D), tl.float32)
    unit = cast(matrix(standard, rows, feature, left, D), tl.float32)
    put_sums(norm_sums, times(g, unit), feature, D)
    put_sums(norm_sums + D, g, feature, D)
    g = times(g, vector(affine.weight, feature, D))
    mean, slope = sums(g) * (1.0 / D), sums(times(g, unit)) * (1.0 / D)
    scale = tl.load(inverse + rows, mask=rows < left, other=0.0)
    back = [(pair[0] - mean[:, None] - pair[1] * slope[:, None]) * scale[:, None] for pair in pairs(g, unit)]
    back = _only_inside(back, feature, D)
    put_sums(norm_sums + 2 * D, back, feature, D)
    return back


@triton.jit
@no_type_check
def _only_inside(x, feature, D: tl.constexpr):
    return [tl.where(pair[1][None, :], pair[0], 0.0) for pair in pairs(x, inside(feature, D))]


@triton.jit
@no_type_check
def _inverse(x, floor):
    return [1.0 / (pair[0] + pair[1]) for pair in pairs(x, floor)]


@triton.jit
@no_type_check
def _floor(feature, points, D: tl.constexpr):
    """What keeps normalisers away from zero; padding belongs to no head, so there it is all they have."""
    return [tl.where(each < D, 1e-6 / points, 1.0)[None, :] for each in feature]


@triton.jit
@no_type_check
def put_sums(pointer, x, feature, SIZE: tl.constexpr):
    """Sums over the rows of a tile."""
    within = inside(feature, SIZE)
    for part in tl.static_range(len(x)):
        tl.store(pointer + feature[part], tl.sum(x[part], 0), mask=within[part])


@triton.jit
@no_type_check
def positive_slope(value):
    """φ' in terms of φ."""
    return [tl.minimum(each, 1.0) for each in value]


@triton.jit
@no_type_check
def relu_slope(x):
    return [tl.where(each > 0, 1.0, 0.0) for each in x]


@triton.jit
@no_type_check
def gelu_slope(x):
    return [
        0.5 * (1 + tl.erf(each * 0.7071067811865476)) + each * 0.3989422804014327 * tl.exp(-0.5 * each * each)
        for each in x
    ]
