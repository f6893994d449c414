"""What the rules are written with: the only module of the project that a rule imports.

An update is a sum (`Sum`): coefficients by monomial, each a product of powers of atoms. A rule takes the update apart, from the
new weight to its states, and gives a claim when it has explained every term, every state and every factor.

* the update: `Update`, its `State`s, `split` a sum by an atom, `update.split_scalars` a product; a rule gives a `Claim`
* hyper-parameters: `update.read(form)`, `constant`, `ABSENT`, `COMPUTED`, `decay_beside` for a decay that no rate scales
* averages: `gradient_average`, `square_average`, `holds_square`, `take_corrections`, `exact_decay`, `l2_of`, `l2_in`
* steps below the root of a second moment: `find_root`, `find_adam_step`, `averages_of`, `adam_claim`, `claim_like_adam`,
  `find_scaled_gradient`
* steps along the gradient itself: `plain_rate`, `is_plain_gradient`, `is_backward`, `averaged_by` for the average of ASGD
* norms, trust ratios and limits: `squares_in`, `is_norm_of`, `trust_factor`, `trust_ratio_of`, `is_trust_ratio`, `clip_of`,
  `unclipped`, `within_limits`
* the distance of D-Adaptation and Prodigy: `distance_estimate`, `gradient_sum`, `added_for`, `without_power`, `are_alike`
* sums: `added`, `scaled`, `product`, `inverse`, `quotient`, `key_of` (equality to six digits), `close`, `is_constant`,
  `is_number`, `split_zero`
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.adaptive_steps import (
    AdamStep,
    adam_claim,
    averages_of,
    claim_like_adam,
    find_adam_step,
    find_scaled_gradient,
    other_state,
)
from hlo_inspect.optimizer.algebra.distances import (
    DistanceEstimate,
    GradientSum,
    added_for,
    are_alike,
    distance_estimate,
    gradient_sum,
    is_number,
    without_power,
)
from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, COMPUTED, Hyperparameter, constant
from hlo_inspect.optimizer.algebra.moments import (
    Average,
    Root,
    exact_decay,
    find_root,
    gradient_average,
    holds_square,
    l2_in,
    l2_of,
    square_average,
    take_corrections,
)
from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    Atom,
    Monomial,
    Sum,
    added,
    close,
    inverse,
    is_constant,
    key_of,
    product,
    scaled,
    split_zero,
)
from hlo_inspect.optimizer.algebra.norms import (
    clip_of,
    is_norm_of,
    is_square_of,
    is_trust_ratio,
    squares_in,
    trust_factor,
    trust_ratio_of,
    unclipped,
    unguarded,
    within_limits,
)
from hlo_inspect.optimizer.algebra.numeric import value_of_form
from hlo_inspect.optimizer.algebra.plain_steps import is_backward, is_plain_gradient, plain_rate
from hlo_inspect.optimizer.algebra.unscaled_decay import decay_beside
from hlo_inspect.optimizer.algebra.update import LEAST_KEPT, Claim, OptimizerRule, State, Update, expanded, quotient, split
from hlo_inspect.optimizer.algebra.weight_averages import averaged_by
from hlo_inspect.optimizer.step.state_arrays import StateArray
