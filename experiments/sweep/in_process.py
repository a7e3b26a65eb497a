"""A pool that is this process: for a debugger, which then stops in a run."""

from __future__ import annotations

from typing import Any

from experiments.sweep import worker


class Pool:
  """Trains one run at a time, here; what a run raises, `wait` raises."""
  slots = 1

  def __init__(self):
    self._task = None

  def submit(self, key: str, task: dict[str, Any]) -> None:
    """Notes a task; `wait` performs it."""
    self._task = key, task

  def wait(self, seconds: float) -> list[tuple[str, dict[str, Any]]]:
    """Performs the task; the (key, answer) pairs that it gives."""
    del seconds
    if self._task is None:
      return []
    (key, task), self._task = self._task, None
    answers = []
    status = worker.perform(
        task, lambda told: answers.append((key, {'progress': told})))
    return [*answers, (key, {'status': status})]

  def close(self) -> None:
    """Does nothing."""
