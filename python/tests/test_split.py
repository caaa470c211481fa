"""op.split(): what each machine runs, and what is exchanged. NumPy is the engine here."""
import numpy as np
import pytest

import trireme


def run_split(operator, parts, given, constants):
    """The results of each part. `given`: a dict of operands for each part; those of parts[p] columns are cut already."""
    known = [dict(each) for each in given]
    for phase in operator.split():
        for p, each in enumerate(known):
            program = phase.program
            said = {"columns": sum(parts), "first_column": sum(parts[:p]), **constants}
            arrays = {name: each[name] for name, *_ in program.operands if name in each}
            made = program.plan(given[p]["x"].shape, results=[name for name, *_ in program.results],
                                absent=[name for name, *_ in program.operands if name not in each],
                                types={name: str(array.dtype) for name, array in arrays.items()},
                                **{name: said[name] for name, *_ in program.constants if name in said})
            results = {name: np.empty(shape, "f4") for name, kind, shape, *_ in made.arrays if kind == "result"}
            made.run(**arrays, **results)
            each.update(results)
        for exchange in phase.exchanges:
            nodes = [[np.atleast_2d(each[name]) for name in exchange.names] for each in known]
            counts = list(parts)
            while len(nodes) > 1:
                merged, widths = [], []
                for k in range(0, len(nodes) - 1, 2):
                    columns = {"left_columns": counts[k], "right_columns": counts[k + 1]} if len(exchange.names) > 1 else {}
                    both = exchange.combine(*nodes[k], *nodes[k + 1], results="all", **columns)
                    merged.append(list(both) if len(exchange.names) > 1 else [both])
                    widths.append(counts[k] + counts[k + 1])
                nodes, counts = merged + nodes[len(nodes) & ~1:], widths + counts[len(counts) & ~1:]
            for each in known:
                for name, total in zip(exchange.names, nodes[0]):
                    each[name] = total.reshape(each[name].shape)
    return known


PROGRAM = """spread_norm(x[i,j], gamma[j] = 1, eps = 1e-5) -> (y[i,j], l[i])
    y = (x - mean(x)) * rsqrt(variance(x) + eps) * gamma
    l = logsumexp(x) + amax(x - amin(x)) + n
"""


@pytest.mark.parametrize("parts, same_bits", [((512, 512), True), ((256,) * 4, True), ((256, 256, 100), True),
                                              ((256, 256, 256), True), ((300, 301), False), ((7, 1, 500), False)])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", PROGRAM])
def test_parts_give_what_whole_rows_give(rng, name, parts, same_bits):
    operator = trireme.op(name)
    x = rng.standard_normal((3, sum(parts))).astype("f4")
    gamma = rng.standard_normal(sum(parts)).astype("f4")
    cuts = np.cumsum(parts)[:-1]
    given = [{"x": np.ascontiguousarray(a), "gamma": b} for a, b in zip(np.split(x, cuts, 1), np.split(gamma, cuts))]
    made = run_split(operator, parts, given, {"eps": 1e-5})
    whole = operator(x, gamma, eps=1e-5, results="all")
    for result, (each, spread, *_) in zip(whole, operator.results):
        got = np.concatenate([part[each] for part in made], 1) if spread == "[i,j]" else made[0][each]
        if same_bits:
            assert got.tobytes() == result.tobytes(), each
        else:
            np.testing.assert_allclose(got, result, rtol=1e-5, atol=1e-5)
        if spread == "[i]":
            assert all(part[each].tobytes() == got.tobytes() for part in made)  # on every machine


@pytest.mark.parametrize("name, exchanges", [("layer_norm", 1), ("softmax", 1), ("log_softmax", 1), ("add_layer_norm", 1)])
def test_composed_programs_exchange_once(rng, name, exchanges):
    """On one machine as on many, bit for bit; and the operator's values."""
    operator = trireme.operator(name)
    composed = operator.compose()
    assert composed is operator.compose() and len(composed.split()) == 1 + exchanges < len(operator.split())
    x, r = (rng.standard_normal((3, 1100)).astype("f4") for _ in range(2))
    parts, cuts = (512, 512, 76), [512, 1024]
    given = [{"x": np.ascontiguousarray(a), "residual": np.ascontiguousarray(b)} for a, b in zip(np.split(x, cuts, 1), np.split(r, cuts, 1))]
    arrays = [x, r] if "residual" in [each[0] for each in operator.operands] else [x]
    made, whole, written = run_split(composed, parts, given, {}), composed(*arrays, results="all"), operator(*arrays, results="all")
    for whole_one, written_one, (each, spread, *_) in zip(*((k if isinstance(k, tuple) else (k,)) for k in (whole, written)), operator.results):
        got = np.concatenate([part[each] for part in made], 1) if spread == "[i,j]" else made[0][each]
        assert got.tobytes() == whole_one.tobytes(), each
        np.testing.assert_allclose(got, written_one, rtol=1e-4, atol=1e-5)


def test_a_composed_program_is_differentiated_first():
    with pytest.raises(trireme.InvalidProgram, match="differentiate the program that says variance"):
        trireme.layer_norm.compose().gradient()
    assert trireme.layer_norm.gradient().compose().text == trireme.layer_norm.gradient().text


def test_backwards_are_split_too():
    phases = trireme.layer_norm.gradient().split()
    assert [phase.program.name for phase in phases] == ["layer_norm_backward_part1", "layer_norm_backward_rest"]
    assert [each.names for each in phases[0].exchanges] == [("sum_1",), ("sum_2",)]
    assert phases[0].exchanges[0].reduction == "sum" and phases[-1].exchanges == ()
    assert trireme.layer_norm.split() is trireme.layer_norm.split()


def test_phases_say_which_groups_stay_whole():
    assert [phase.groups for phase in trireme.rms_norm_mxfp8.split()] == [(), ("[j / block]",)]
    assert all(phase.groups == () for phase in trireme.layer_norm.split())
    quarters = trireme.op("quarters(x[i,j]) -> (y[i,j])\n    y = x / sum(x, j / (n / 4)) * amax(x, j / 2)")
    assert quarters.split()[0].groups == ("[j / (columns / 4)]", "[j / 2]")


def test_what_cannot_be_split_is_refused_with_a_reason():
    with pytest.raises(trireme.Unsupported, match="'cos' wraps j"):
        trireme.rms_norm_rope.split()
    with pytest.raises(trireme.Unsupported, match="rotate reads columns of other parts"):
        trireme.op("turn(x[i,j]) -> (y[i,j])\n    y = rotate(x, 1)").split()


@pytest.mark.parametrize("parts", [1, 2, 4, 8])
def test_weights_gradients_are_the_same_bits_for_any_number_of_parts(rng, parts):
    x, dy = (rng.standard_normal((2048, 40)).astype("f4") for _ in range(2))
    gamma, backward, block = np.ones(40, "f4"), trireme.layer_norm.gradient(), trireme._core.row_block(2048, 40)
    _, average, rstd = trireme.layer_norm(x, results="all")

    def gradients(rows, **more):
        given = {"dy": dy[rows], "x": x[rows], "gamma": gamma, "average": average[rows], "rstd": rstd[rows]}
        return backward(*(given.get(name) for name, *_ in backward.operands), results=["dgamma", "dbeta"], **more)

    share = 2048 // parts
    nodes = [gradients(slice(k * share, (k + 1) * share), row_block=block) for k in range(parts)]
    while len(nodes) > 1:
        nodes = [tuple(a + b for a, b in zip(*nodes[k:k + 2])) for k in range(0, len(nodes), 2)]
    assert share % block == 0 and [each.tobytes() for each in nodes[0]] == [each.tobytes() for each in gradients(slice(None))]


def test_row_blocks_of_a_larger_problem(rng):
    x = rng.standard_normal((4096, 40)).astype("f4")
    total = trireme.op("p(x[i,j]) -> (c[j])\n    c = colsum(x)")
    block = trireme._core.row_block(4096, 40)
    nodes = [total(part, row_block=block) for part in np.split(x, 4)]
    assert ((nodes[0] + nodes[1]) + (nodes[2] + nodes[3])).tobytes() == total(x).tobytes()
    assert any(total(part).tobytes() != node.tobytes() for part, node in zip(np.split(x, 4), nodes))
    with pytest.raises(trireme.InvalidArgument, match="less than the contract's"):
        total(x, row_block=1)
    with pytest.raises(trireme.InvalidArgument, match="no result that is stored sums over rows"):
        trireme.swiglu(x, x, row_block=16)
