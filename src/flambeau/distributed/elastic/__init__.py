"""Jobs whose machines may fail, leave and join: ``torch.distributed.elastic``.

One agent a machine (``agent``) starts the ranks there (``multiprocessing``). Agents meet in rounds (``rendezvous``): a round has its machines, in
an order, and a store. When a rank fails, or a machine leaves or joins, the round is over: all agents end their ranks and meet again.
``launcher.api`` and ``flambeau launch`` are the entrances.
"""
