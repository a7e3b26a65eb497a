"""Which labels are wrong: the audit of a data set by a Logistic-Normal model.

    report = ln_tfp.audit_labels(model, images, labels)
    print(report)
    report.to_csv('labels.csv')
    report.save('audit.html')

`python -m ln_tfp.audit` trains a model for it, too.
"""

from ln_tfp.audit.auditing import audit_labels
from ln_tfp.audit.report import ConfusedPair
from ln_tfp.audit.report import LabelReport

__all__ = ['ConfusedPair', 'LabelReport', 'audit_labels']
