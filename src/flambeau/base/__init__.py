"""Level 0: what everything else stands on and nothing here knows of tensors: dtypes, devices, shapes, pytrees, configuration, logs."""
