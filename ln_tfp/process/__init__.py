"""The Logistic-Normal process: classification in closed form."""

from ln_tfp.process.estimator import LogisticNormalProcess
from ln_tfp.process.leave_one_out import LeaveOneOut
from ln_tfp.process.noise_model import NoiseModel
from ln_tfp.process.votes import Votes
