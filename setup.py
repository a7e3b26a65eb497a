"""Installs ln_tfp; requirements.txt has the exact versions that are tested."""

import pathlib
import runpy

import setuptools

HERE = pathlib.Path(__file__).parent
VERSION = runpy.run_path(str(HERE / 'ln_tfp/version.py'))['__version__']

setuptools.setup(
    name='ln_tfp',
    version=VERSION,
    description=(
        'Logistic-Normal likelihoods for heteroscedastic label noise, for '
        'Keras and TensorFlow Probability'),
    long_description=(HERE / 'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    project_urls={'Paper': 'https://openreview.net/forum?id=7wA65zL3B3'},
    python_requires='>=3.10',
    packages=setuptools.find_packages(include=['ln_tfp', 'ln_tfp.*']),
    package_data={'ln_tfp': ['py.typed'], 'ln_tfp.audit.review': ['assets/*']},
    # docs/versions.md: what these bounds were tried with.
    install_requires=[
        'keras>=3.12,<4',
        'numpy>=1.26,<2.4',  # TFP's SoftmaxCentered fails from 2.4 on
        'scikit-learn>=1.6',
        'scipy>=1.11',  # imported by name; scikit-learn brings it in any case
        'tensorflow-probability==0.25.*',
        'tensorflow>=2.20,<2.22',
        'tf-keras>=2.20,<2.22',  # imported by TFP; our models are Keras 3
    ],
    extras_require={
        # What an audit reads and shows beside arrays and CSV.
        'audit': [
            'pandas',  # LabelReport.to_pandas
            'pillow',  # folders of images, pictures on the page
            'pyarrow',  # Parquet files
        ],
        # The site, `make docs`. Only from Python 3.11 on: so does Sphinx 8.2.
        'docs': [
            'myst-parser',  # the pages are Markdown
            'pydata-sphinx-theme',  # has its fonts and scripts with it
            'sphinx>=8.2',  # from then on a summary can leave out signatures
        ],
        # The laboratory of a clone: it is not in the wheel.
        'experiments': [
            'absl-py',
            'etils[epy]',
            'importlib_resources',  # TFDS needs it and does not ask for it
            'matplotlib',
            'orjson',
            'rich',
            'tensorboard',  # TensorFlow 2.21 no longer brings it
            'tensorflow-datasets>=4.9.10',
        ],
        # A plain TensorFlow has no CUDA libraries and trains on the CPU.
        'gpu': ['tensorflow[and-cuda]>=2.20,<2.22'],
        # Runs of the laboratory on many machines: --launcher=ray.
        'ray': ['ray>=2.50'],
        # All that some test or benchmark uses, beside `experiments`.
        'test': [
            'ai-edge-litert',  # examples/export.py
            'build',  # what the wheel has in it
            'cleanlab>=2.9,<3',  # benchmarks compare with it
            'jax',  # Keras's other backend
            'keras-tuner',  # examples/tuning.py
            'matplotlib',
            'onnx',  # this and the next: examples/export.py
            'onnxruntime',
            'pandas',
            'pillow',
            'psutil',
            'pyarrow',
            'pytest',
            'pytest-xdist',
            'ray>=2.50',
            'ruff',
            'selenium',
            'tf2onnx',  # examples/export.py; what Keras exports to ONNX with
            'twine',  # whether the packages can be uploaded
        ],
    },
    classifiers=[
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
)
