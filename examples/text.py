"""Texts and their noisy labels, through an embedding layer.

    python examples/text.py               # on sentences made for this run
    python examples/text.py reviews.tsv   # lines of: label, tab, text

The classifier that comes out takes strings, and knows nothing of ln_tfp. Only
TensorFlow has tensors of strings: this needs Keras's TensorFlow backend.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import ln_tfp

_WORDS = {
    'food': ['bread', 'cook', 'lemon', 'salt', 'soup', 'taste'],
    'music': ['band', 'choir', 'drum', 'piano', 'song', 'tune'],
    'sport': ['ball', 'coach', 'goal', 'match', 'race', 'team'],
}
_FILLER = ['a', 'and', 'in', 'of', 'the', 'with']


def make_texts(num=600, length=8):
  """Returns texts of three topics, half their words filler, and topics."""
  rng = np.random.default_rng(0)
  topics = rng.choice(list(_WORDS), num)
  texts = [' '.join(rng.choice(_WORDS[topic] + _FILLER, length))
           for topic in topics]
  return np.array(texts), topics


def read_texts(path):
  """Returns texts and topics from a file of lines."""
  with open(path, encoding='utf-8') as file:
    topics, texts = zip(*(line.rstrip('\n').split('\t', 1) for line in file))
  return np.array(texts), np.array(topics)


def main(path=None):
  texts, topics = read_texts(path) if path else make_texts()
  names, labels = np.unique(topics, return_inverse=True)
  # To see what the noise does, three labels in ten are drawn anew.
  noisy = labels if path else ln_tfp.noise.corrupt(labels, 'sym:0.3')
  vectorize = keras.layers.TextVectorization(
      max_tokens=20_000, output_sequence_length=100)
  vectorize.adapt(texts)
  model = keras.Sequential([
      keras.Input((), dtype='string'), vectorize,
      keras.layers.Embedding(vectorize.vocabulary_size(), 32, mask_zero=True),
      keras.layers.GlobalAveragePooling1D(),
      keras.layers.Dense(32, activation='relu'),
      ln_tfp.LogisticNormalHead(len(names))])
  model.compile(keras.optimizers.Adam(.01), loss=ln_tfp.nll,
                metrics=[ln_tfp.Accuracy()])
  model.fit(tf.constant(texts), noisy, epochs=10, verbose=2)
  classifier = ln_tfp.to_classifier(model)
  found = classifier.predict(tf.constant(texts), verbose=0).argmax(axis=1)
  print(f'{np.mean(noisy == labels):.1%} of the given labels are right, '
        f'{np.mean(found == labels):.1%} of the predicted ones.')
  return np.mean(found == labels)


if __name__ == '__main__':
  main(*sys.argv[1:2])
