"""The progress line."""

import io

from experiments.training import progress


class _Clock:
  now = 0.

  def __call__(self):
    return self.now


class _Terminal(io.StringIO):

  def isatty(self):
    return True


def test_a_terminal_shows_one_line_that_rewrites_itself():
  clock, stream = _Clock(), _Terminal()
  line = progress.Progress(stream, 'digits-LN', 10, clock=clock)
  for epoch in range(1, 6):
    clock.now += 60.
    line.epoch(epoch, 1.2345, .5)
  assert '\n' not in stream.getvalue()
  last = stream.getvalue().split('\r')[-1]
  assert last == (
      'digits-LN [##########..........] epoch 5/10  loss 1.234  '
      'accuracy 50.00 %  5 min 00 s left')
  line.close()
  assert stream.getvalue().endswith('\n')


def test_a_shorter_line_covers_a_longer_one():
  clock, stream = _Clock(), _Terminal()
  line = progress.Progress(stream, 'x', 2, clock=clock)
  clock.now = 7200.
  line.epoch(1, 1.234, .5)
  clock.now += 1.
  line.epoch(2, 1., None)
  first, second = stream.getvalue().split('\r')[1:]
  assert len(second) >= len(first)


def test_the_bar_moves_within_an_epoch():
  clock, stream = _Clock(), _Terminal()
  line = progress.Progress(stream, 'x', 2, clock=clock)
  clock.now = 5.
  line.step(0, .5)
  assert '[#####...............] epoch 0/2  15 s left' in stream.getvalue()


def test_elsewhere_there_are_plain_lines_and_not_too_many():
  clock, stream = _Clock(), io.StringIO()
  line = progress.Progress(stream, 'x', 100, clock=clock)
  for epoch in range(1, 101):
    clock.now += .1
    line.step(epoch - 1, .5)
    line.epoch(epoch, 1., .5)
  line.close()
  assert '\r' not in stream.getvalue()
  lines = stream.getvalue().splitlines()
  assert 5 <= len(lines) <= 15
  assert lines[-1].startswith('x  epoch 100/100  loss 1  accuracy 50.00 %')


def test_time_left_of_a_resumed_run_counts_only_what_it_did():
  clock, stream = _Clock(), io.StringIO()
  line = progress.Progress(stream, 'x', 100, start=90, clock=clock)
  clock.now = 10.
  line.epoch(95, 1., .5)
  assert stream.getvalue().endswith('10 s left\n')
