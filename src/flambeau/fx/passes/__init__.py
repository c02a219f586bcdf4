"""Passes over graphs: what each node gives (shape_prop.py, fake_tensor_prop.py), a graph in parts (split_module.py), passes as objects (infra/)."""
