"""The numbers of the paper's tables, as data: `numbers/*.csv`."""

from collections.abc import Iterator
import csv
import dataclasses
import functools
import pathlib
from typing import Any

from experiments.cli import pairs

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
def accuracy(table: str) -> dict[tuple[str, str, str], Number]:
  """(dataset, method, noise) -> test accuracy.

  Args:
    table: 'synthetic_noise' or 'natural_noise'.
  """
  return {
      (row['dataset'], row['method'], row['noise']): _number(row)
      for row in _rows(table)}


@functools.cache
def ablation() -> dict[tuple[str, str, bool], Number]:
  """(dataset, covariance, dummy class) -> test accuracy."""
  return {
      (row['dataset'], row['covariance'], row['dummy_class'] == '1'):
          _number(row)
      for row in _rows('ablation')}


@functools.cache
def calibration() -> dict[tuple[str, str], Number]:
  """(dataset, method) -> NLL on the training set under three annotators."""
  return {
      (row['dataset'], row['method']): _number(row)
      for row in _rows('calibration')}


@functools.cache
def hyperparameters() -> dict[tuple[str, str, str], dict[str, Any]]:
  """(dataset, method, noise) -> the winners of the paper's search."""
  return {
      (row['dataset'], row['method'], row['noise']):
          pairs.parse(row['hyperparameters'])
      for table in ('synthetic_noise', 'natural_noise')
      for row in _rows(f'hyperparameters_{table}')}


def _rows(table: str) -> Iterator[dict[str, str]]:
  file = DIRECTORY / f'{table}.csv'
  with file.open(encoding='utf-8', newline='') as stream:
    yield from csv.DictReader(stream)


def _number(row: dict[str, str]) -> Number:
  return Number(float(row['mean']), float(row['std']), row['bold'] == '1')
