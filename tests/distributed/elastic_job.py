"""What the ranks of test_elastic.py's jobs run: ``python elastic_job.py FOLDER``. Files in the folder tell a rank what to do:
``go`` to end well, ``fail.RANK`` to exit with status 3."""

import os
import sys
import time

folder = sys.argv[1]
env = os.environ
rank = env["RANK"]
print(
    f"ready rank={rank} world={env['WORLD_SIZE']} machine={env['GROUP_RANK']}/{env['GROUP_WORLD_SIZE']} "
    f"restarts={env['TORCHELASTIC_RESTART_COUNT']} of={env['TORCHELASTIC_MAX_RESTARTS']} run={env['TORCHELASTIC_RUN_ID']} "
    f"role={env['ROLE_NAME']}/{env['ROLE_RANK']}/{env['ROLE_WORLD_SIZE']} local={env['LOCAL_RANK']}/{env['LOCAL_WORLD_SIZE']} "
    f"pid={os.getpid()}",
    flush=True,
)
while not os.path.exists(f"{folder}/go"):
    if os.path.exists(f"{folder}/fail.{rank}"):
        os.unlink(f"{folder}/fail.{rank}")
        sys.exit(3)
    time.sleep(0.02)
