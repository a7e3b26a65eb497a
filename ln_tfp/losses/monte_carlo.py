"""The expected softmax of normal logits, by Monte Carlo in bounded memory.

This is TensorFlow's; `monte_carlo_scan` has the same for other backends.

The logits of a sample are

    z = (mu + sigma * e + V f) / tau,    e ~ N(0, I_K), f ~ N(0, I_R)

and the heteroscedastic methods need the mean of softmax(z) over S samples,
its logarithm at the label, and the gradient of that. `packed` holds the
parameters as columns, `[batch, K, J]` with J = 2 + R: mu, sigma, and those of
V. The samples `noise`, `[S, K + R]`, are e and f side by side and shared by
all examples.

Everything runs over the samples in chunks. For class k the logits of a chunk
are a product of matrices, `parameters[k] @ basis[k]` with the basis
`[1, e_k, f]`, and the gradient is its transpose, so that memory beyond the
parameters and the noise is that of one chunk. For whole labels one pass over
the samples gives the loss and the gradient; soft ones take two.
"""

import tensorflow as tf

# Numbers in one chunk of logits, [K, batch, samples]: 1 MB, fits the caches.
_CHUNK = 2**18
_MIN_SAMPLES = 8
# Logits this close to the largest mean can go through exp without a shift.
_SAFE_SPREAD = 60.


def nll(labels, packed, noise, temperature: float = 1.) -> tf.Tensor:
  """Returns `-log mean_s softmax(z_s)[label]`, `[batch]`.

  Its gradient in mu is the paper's Eq. 14; those in sigma and V weigh the
  same terms with e and f.

  Args:
    labels: Integers `[batch]`.
    packed: Parameters `[batch, K, J]`.
    noise: Samples `[S, K + R]`.
    temperature: tau.
  """
  return _loss(_nll_and_gradient, labels, packed, noise, temperature)


def cross_entropy(target, packed, noise, temperature: float = 1.) -> tf.Tensor:
  """Returns `-sum_k target_k log mean_s softmax(z_s)[k]`, `[batch]`.

  Args:
    target: Soft labels `[batch, K]`.
    packed: Parameters `[batch, K, J]`.
    noise: Samples `[S, K + R]`.
    temperature: tau.
  """
  return _loss(
      _cross_entropy_and_gradient, target, packed, noise, temperature)


def _loss(value_and_gradient, labels, packed, noise, temperature):
  @tf.custom_gradient
  def loss(packed):
    value, gradient = value_and_gradient(
        labels, _Sampler(packed, noise, temperature))
    gradient = tf.transpose(gradient, [1, 0, 2]) / temperature
    return value, lambda upstream: (
        upstream[:, tf.newaxis, tf.newaxis] * gradient)

  return loss(packed)


def probabilities(packed, noise, temperature: float = 1.) -> tf.Tensor:
  """Returns `mean_s softmax(z_s)`, `[batch, K]`."""
  sampler = _Sampler(packed, noise, temperature)

  def body(start, total):
    logits, _, valid = sampler.chunk(start)
    exp = tf.exp(logits)
    weights = tf.cast(valid, exp.dtype) / tf.reduce_sum(exp, axis=0)
    return start + sampler.size, total + tf.reduce_sum(exp * weights, axis=-1)

  total = sampler.loop(body, tf.zeros_like(sampler.parameters[..., 0]))
  return tf.transpose(total) / sampler.num_samples


def _nll_and_gradient(labels, sampler):
  """Returns the loss `[batch]` and its gradient in `sampler.parameters`.

  With p_s = softmax(z_s), the gradient in z_s is w_s (p_s - onehot) with
  w_s = p_s[label] / sum_s p_s[label]. The weights are kept relative to the
  largest log p_s[label] so far, `peak`, which only grows.
  """
  labels = tf.cast(labels, tf.int32)
  index = tf.stack([labels, tf.range(tf.shape(labels)[0])], axis=-1)

  def body(start, peak, expected, observed):
    logits, basis, valid = sampler.chunk(start)
    exp = tf.exp(logits)
    normalizer = tf.reduce_sum(exp, axis=0)
    log_p = tf.gather_nd(logits, index) - tf.math.log(normalizer)
    log_p = tf.where(valid, log_p, float('-inf'))
    new_peak = tf.maximum(peak, tf.reduce_max(log_p, axis=-1))
    weights = tf.exp(log_p - new_peak[:, tf.newaxis])
    decay = tf.exp(peak - new_peak)[:, tf.newaxis]
    expected = expected * decay + tf.matmul(
        exp * (weights / normalizer), basis, transpose_b=True)
    observed = observed * decay + tf.linalg.matvec(
        tf.gather(basis, labels), weights)
    return start + sampler.size, new_peak, expected, observed

  zeros = tf.zeros_like(sampler.parameters)
  peak, expected, observed = sampler.loop(
      body, tf.fill(tf.shape(labels), tf.constant(float('-inf'), zeros.dtype)),
      zeros, zeros[0])
  total = observed[:, :1]  # the first row of the basis is 1
  value = tf.math.log(sampler.num_samples) - peak - tf.math.log(total[:, 0])
  one_hot = tf.one_hot(labels, zeros.shape[0], axis=0, dtype=zeros.dtype)
  return value, (expected - one_hot[..., tf.newaxis] * observed) / total


def _cross_entropy_and_gradient(target, sampler):
  """Returns the loss `[batch]` and its gradient in `sampler.parameters`.

  With m_k = mean_s p_sk and r_sk = target_k p_sk / (S m_k), the gradient in
  z_s is `p_s sum_k r_sk - r_s`. The first pass finds the log m_k, the second
  the gradient.
  """
  target = tf.transpose(target)

  def add_up(start, peak, total):
    logits, _, valid = sampler.chunk(start)
    log_p = tf.where(valid, tf.nn.log_softmax(logits, axis=0), float('-inf'))
    new_peak = tf.maximum(peak, tf.reduce_max(log_p, axis=-1))
    total = total * tf.exp(peak - new_peak) + tf.reduce_sum(
        tf.exp(log_p - new_peak[..., tf.newaxis]), axis=-1)
    return start + sampler.size, new_peak, total

  zeros = tf.zeros_like(sampler.parameters[..., 0])
  peak, total = sampler.loop(
      add_up, tf.fill(tf.shape(zeros), tf.constant(float('-inf'), zeros.dtype)),
      zeros)
  log_sum = peak + tf.math.log(total)

  def add_gradient(start, gradient):
    logits, basis, valid = sampler.chunk(start)
    log_p = tf.where(valid, tf.nn.log_softmax(logits, axis=0), float('-inf'))
    share = target[..., tf.newaxis] * tf.exp(log_p - log_sum[..., tf.newaxis])
    residual = tf.exp(log_p) * tf.reduce_sum(share, axis=0) - share
    return start + sampler.size, gradient + tf.matmul(
        residual, basis, transpose_b=True)

  gradient = sampler.loop(add_gradient, tf.zeros_like(sampler.parameters))
  log_mean = log_sum - tf.math.log(sampler.num_samples)
  return -tf.reduce_sum(target * log_mean, axis=0), gradient


class _Sampler:
  """Logits of the samples, chunk by chunk.

  Attributes:
    parameters: `[K, batch, J]`, over the temperature, and mu less its maximum
      over the classes, which no softmax notices.
    num_samples: S, a scalar of the parameters' dtype.
    size: Samples in a chunk, a scalar tensor.
  """

  def __init__(self, packed, noise, temperature):
    packed = tf.convert_to_tensor(packed) / temperature
    centre = tf.reduce_max(packed[..., :1], axis=1, keepdims=True)
    packed = tf.concat([packed[..., :1] - centre, packed[..., 1:]], axis=-1)
    self.parameters = tf.transpose(packed, [1, 0, 2])
    self._num_classes = packed.shape[1]
    self._rank = packed.shape[2] - 2
    self._total = noise.shape[0]
    self.num_samples = tf.constant(self._total, packed.dtype)
    per_sample = tf.maximum(tf.size(packed[..., 0]), 1)
    self.size = tf.clip_by_value(
        _CHUNK // per_sample, min(_MIN_SAMPLES, self._total), self._total)
    noise = tf.transpose(tf.cast(noise, packed.dtype))
    self._is_safe = self._spread(noise) < _SAFE_SPREAD
    self._noise = tf.pad(noise, [[0, 0], [0, -self._total % self.size]])

  def _spread(self, noise):
    """Returns a bound of |z - mu / tau| over all samples and examples."""
    extent = self._basis(
        tf.reduce_max(tf.abs(noise), axis=-1, keepdims=True))[:, 1:]
    return tf.reduce_max(tf.matmul(tf.abs(self.parameters[..., 1:]), extent))

  def _basis(self, noise):
    """Returns `[K, J, samples]`: for each class 1, its e, and f."""
    own = noise[:self._num_classes, tf.newaxis]
    shared = tf.repeat(
        noise[tf.newaxis, self._num_classes:], self._num_classes, axis=0)
    return tf.concat([tf.ones_like(own), own, shared], axis=1)

  def chunk(self, start):
    """Returns the chunk of samples that begins at `start`.

    Returns:
      logits: `[K, batch, size]`, up to a constant for each sample, such that
        the largest of the K neither overflows nor underflows in exp.
      basis: `[K, J, size]`.
      valid: Booleans `[size]`, False where the last chunk is padded.
    """
    basis = self._basis(tf.slice(
        self._noise, [0, start],
        [self._num_classes + self._rank, self.size]))
    logits = tf.matmul(self.parameters, basis)
    # The shift by the maximum takes a third of the time and is rarely needed.
    logits = tf.cond(
        self._is_safe, lambda: logits,
        lambda: logits - tf.reduce_max(logits, axis=0))
    return logits, basis, start + tf.range(self.size) < self._total

  def loop(self, body, *state):
    """Returns the state after `body(start, *state)` for every chunk."""
    _, *state = tf.while_loop(
        lambda start, *_: start < self._total, body,
        (tf.constant(0), *state), parallel_iterations=1)
    return state[0] if len(state) == 1 else state
