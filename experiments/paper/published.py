"""The numbers of the paper's tables, as data: `numbers/*.csv`."""

from collections.abc import Iterator
import csv
import dataclasses
import functools
import pathlib

DIRECTORY = pathlib.Path(__file__).resolve().parent / 'numbers'
SEEDS = 5  # behind each mean and standard deviation


@dataclasses.dataclass(frozen=True)
class Number:
  """A cell of a table.

  Attributes:
    mean: over five seeds; accuracies are in percent.
    std: standard deviation.
    bold: whether the paper prints it in bold.
  """
  mean: float
  std: float
  bold: bool


@functools.cache
def table(name: str) -> dict[tuple[str, str, str], Number]:
  """(data set, row, noise) -> the number of a table, in the paper's order.

  Args:
    name: 'synthetic_noise', 'natural_noise', 'ablation' (test accuracy) or
      'calibration' (NLL on the training set under three annotators).
  """
  return {
      (row['dataset'], row['method'], row['noise']): Number(
          float(row['mean']), float(row['std']), row['bold'] == '1')
      for row in read(name)}


def cells(name: str, dataset: str) -> dict[tuple[str, str], Number]:
  """(row, noise) -> the number of a table for one data set."""
  return {(row, noise): number
          for (each, row, noise), number in table(name).items()
          if each == dataset}


def read(name: str) -> Iterator[dict[str, str]]:
  """The lines of a file of numbers, by the names of its columns."""
  file = DIRECTORY / f'{name}.csv'
  with file.open(encoding='utf-8', newline='') as stream:
    yield from csv.DictReader(stream)
