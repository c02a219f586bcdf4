"""Module and Parameter: the tree that networks, captured graphs and everything with parameters are made of.

Below ``fx``, because a GraphModule is a Module; ``torch.nn`` gives the names (``nn.modules.module``, ``nn.parameter``). Enter at module.py;
parameter.py has Parameter and Buffer, hooks.py the registries of hooks and the call that runs them, state.py saving and loading."""
