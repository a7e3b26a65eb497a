"""The loop of a worker process: tasks in, answers out, a JSON document a line.

Tasks come on standard input, answers go to standard output. Where the input
ends the process ends, too, in the middle of a training if need be: a sweep
leaves no orphans, however it ends itself.
"""

from collections.abc import Callable
import json
import os
import queue
import signal
import sys
import threading
import traceback
from typing import Any

# Sends what a task says of itself while it runs.
Tell = Callable[[str], None]


def serve(perform: Callable[[dict[str, Any], Tell], str]) -> None:
  """Performs tasks, one after the other, until the input ends.

  Args:
    perform: called with a task and `Tell`; returns the status that is answered.
      An exception is answered as the status 'failed' with a message.
  """
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's
  answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
  os.dup2(2, 1)  # whatever a library prints is no answer

  def answer(**document):
    answers.write(json.dumps(document) + '\n')
    answers.flush()

  tasks = queue.Queue()
  threading.Thread(target=_read, args=(tasks,), daemon=True).start()
  while True:
    task = tasks.get()
    try:
      status = perform(task, lambda text: answer(progress=text))
      answer(status=status)
    except Exception as error:  # pylint: disable=broad-except
      traceback.print_exc()
      answer(status='failed', message=f'{type(error).__name__}: {error}')


def _read(tasks: queue.Queue) -> None:
  for line in sys.stdin:
    tasks.put(json.loads(line))
  os._exit(0)  # the main thread may be deep in TensorFlow
