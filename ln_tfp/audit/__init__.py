"""Which labels are wrong: the audit of a data set.

    report = ln_tfp.audit_features(embeddings, labels)      # nothing trained
    report = ln_tfp.audit_labels(model, images, labels)     # by a trained model
    print(report)
    report.to_csv('labels.csv')
    report.save('audit.html')                     # review them, download
    after = report.apply('decisions.csv')         # labels after that

`python -m ln_tfp.audit` does it from files. From left to right:

    files/ inputs/     what there is to read: folders, tables, arrays, batches
    closed_form        `audit_features`
    auditing           `audit_labels`, with margins for AUM
    agreeing           `consensus` of several annotators
    judging/           probabilities that labels are wrong, and decisions
    report, trust      what was found, and how far to believe it
    review/            page, decisions, exports
    command/           the program
"""

from ln_tfp.audit.agreeing import Consensus
from ln_tfp.audit.agreeing import consensus
from ln_tfp.audit.auditing import audit_labels
from ln_tfp.audit.closed_form import audit_features
from ln_tfp.audit.margins import MarginRecorder
from ln_tfp.audit.report import ConfusedPair
from ln_tfp.audit.report import LabelReport
from ln_tfp.audit.review import label_studio
from ln_tfp.audit.review import spreadsheet
from ln_tfp.audit.review.decisions import Corrected
from ln_tfp.audit.review.decisions import Decision
from ln_tfp.audit.trust import Trust

__all__ = [
    'ConfusedPair', 'Consensus', 'Corrected', 'Decision', 'LabelReport',
    'MarginRecorder', 'Trust', 'audit_features', 'audit_labels', 'consensus',
    'label_studio', 'spreadsheet',
]
