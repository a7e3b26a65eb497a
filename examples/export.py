"""From a trained model to LiteRT (TensorFlow Lite) and ONNX files.

    pip install ai-edge-litert onnxruntime onnx tf2onnx
    python examples/export.py            # writes to a temporary folder
    python examples/export.py exported/

`to_classifier` makes the model an ordinary Keras one, which Keras exports; the
files are then run, and agree with Keras.
"""

import pathlib
import sys
import tempfile

from ai_edge_litert import interpreter
import keras
import numpy as np
import onnxruntime
from sklearn import datasets

import ln_tfp


def run_litert(path, images):
  """Returns the probabilities of a LiteRT model."""
  run = interpreter.Interpreter(str(path)).get_signature_runner()
  (name,) = run.get_input_details()
  (probabilities,) = run(**{name: images}).values()
  return probabilities


def run_onnx(path, images):
  """Returns the probabilities of an ONNX model."""
  session = onnxruntime.InferenceSession(str(path))
  (probabilities,) = session.run(None, {session.get_inputs()[0].name: images})
  return probabilities


def main(folder=None):
  if folder is None:
    with tempfile.TemporaryDirectory() as made:
      return main(made)
  folder = pathlib.Path(folder)
  folder.mkdir(parents=True, exist_ok=True)
  digits = datasets.load_digits()
  images = (digits.images[..., np.newaxis] / 16).astype(np.float32)
  model = keras.Sequential([
      keras.Input((8, 8, 1)), keras.layers.Conv2D(16, 3, activation='relu'),
      keras.layers.Flatten(), ln_tfp.LogisticNormalHead(10)])
  model.compile('adam', loss=ln_tfp.nll)
  model.fit(images, digits.target, epochs=5, verbose=2)
  classifier = ln_tfp.to_classifier(model)
  expected = classifier.predict(images, verbose=0)
  worst = {}
  for kind, run in (('tflite', run_litert), ('onnx', run_onnx)):
    path = folder / f'classifier.{kind}'
    classifier.export(
        path, format={'tflite': 'litert'}.get(kind, kind), verbose=False)
    worst[kind] = np.abs(run(path, images) - expected).max()
    print(f'{path}: differs from Keras by at most {worst[kind]:.1e}')
  return worst


if __name__ == '__main__':
  main(*sys.argv[1:2])
