"""A worker that tells about its environment."""

import os

from experiments.sweep import worker


def perform(task, tell):
  del tell
  return ' '.join(os.environ[name] for name in task['variables'])


if __name__ == '__main__':
  worker.serve(perform)
