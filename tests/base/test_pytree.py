"""Pytrees: order of keys, specs made by hand, JSON."""

import collections
import dataclasses

import pytest

import flambeau as torch
from flambeau.base import pytree


def test_dicts_keep_their_order():
    leaves, spec = pytree.tree_flatten({"b": 1, "a": 2})
    assert leaves == [1, 2] and list(pytree.tree_unflatten([3, 4], spec)) == ["b", "a"]
    assert pytree.tree_map(lambda a, b: (a, b), {"b": 1, "a": 2}, {"a": 3, "b": 4}) == {"b": (1, 4), "a": (2, 3)}


TREE = {
    "a": [1, 2, (3, collections.OrderedDict(x=1))],
    "b": collections.deque([1], maxlen=3),
    "c": collections.defaultdict(list, {"q": 1}),
}


def test_specs_are_json():
    spec = pytree.tree_structure(TREE)
    text = pytree.treespec_dumps(spec)
    assert text.startswith(
        '[1, {"type": "builtins.dict", "context": "[\\"a\\", \\"b\\", \\"c\\"]", "children_spec": [{"type": "builtins.list"'
    )
    assert pytree.treespec_loads(text) == spec and isinstance(spec, pytree.TreeSpec)
    assert pytree.treespec_pprint(pytree.tree_structure([1, (2,)])) == "[*, (*,)]"
    with pytest.raises(ValueError, match="Unknown protocol"):
        pytree.treespec_loads('[7, {"type": null}]')


@dataclasses.dataclass
class Pair:
    a: object
    b: object


def test_registered_classes():
    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda values, _: Pair(*values))
    assert pytree.tree_leaves([Pair(1, Pair(2, 3))]) == [1, 2, 3]
    assert pytree.SUPPORTED_NODES[Pair].flatten_fn(Pair(1, 2)) == ([1, 2], None)
    made = pytree.TreeSpec(Pair, None, [pytree.LeafSpec(), pytree.tree_structure((0, 0))])
    assert pytree.tree_unflatten([1, 2, 3], made) == Pair(1, (2, 3))
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, None, None)
    with pytest.raises(NotImplementedError, match="serialized_type_name"):
        pytree.treespec_dumps(pytree.tree_structure(Pair(1, 2)))


def test_a_size_is_a_node():
    size = torch.Size([2, 3])
    leaves, spec = pytree.tree_flatten({"shape": size})
    assert leaves == [2, 3] and isinstance(pytree.tree_unflatten([4, 5], spec)["shape"], torch.Size)
    assert pytree.tree_map(lambda n: [n], size) == ([2], [3])
    assert pytree.tree_map_only(int, lambda n: n + 1, size) == (3, 4)
    spec = pytree.tree_structure(size)
    leaf = '{"type": null, "context": null, "children_spec": []}'
    text = f'[1, {{"type": "torch.Size", "context": "null", "children_spec": [{leaf}, {leaf}]}}]'
    assert pytree.treespec_dumps(spec) == text and pytree.treespec_loads(text) == spec
    assert pytree.tree_flatten_with_path(size)[0] == [((pytree.SequenceKey(0),), 2), ((pytree.SequenceKey(1),), 3)]
