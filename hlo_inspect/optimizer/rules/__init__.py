"""The recognised optimizers, a row each. Equations, papers and states stand in the files of the rules."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.optimizer.algebra.update import Claim, OptimizerRule, Update
from hlo_inspect.optimizer.rules import (
    adafactor,
    adam_family,
    adopt,
    distance_estimates,
    ftrl,
    layerwise,
    muon,
    nadam,
    rmsprop,
    rprop,
    schedule_free,
    sgd,
    signs,
    sm3,
    sophia,
)
from hlo_inspect.optimizer.rules.adam_family import adam_like

_ADAM = ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay")
_ADAM_L2 = (*_ADAM, "l2")
_MOMENTS = ("first_moment", "second_moment")

RULES: tuple[OptimizerRule, ...] = (
    OptimizerRule(
        "adam",
        "Adam",
        "Kingma and Ba 2015, arXiv:1412.6980; AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101",
        adam_like(),
        _ADAM_L2,
        _MOMENTS,
        with_decay="adamw",
    ),
    OptimizerRule(
        "sgd",
        "SGD",
        "Polyak 1964 (momentum), Sutskever et al. 2013 (Nesterov's)",
        sgd.match_sgd,
        ("learning_rate", "momentum", "nesterov", "weight_decay", "l2"),
        ("first_moment",),
    ),
    OptimizerRule(
        "lion",
        "Lion",
        "Chen et al. 2023, arXiv:2302.06675",
        signs.match_lion,
        ("learning_rate", "beta1", "beta2", "weight_decay", "l2"),
        ("first_moment",),
    ),
    OptimizerRule(
        "rmsprop",
        "RMSProp",
        "Hinton 2012, lecture 6e; centered: Graves 2013, arXiv:1308.0850",
        rmsprop.match_rmsprop,
        ("learning_rate", "beta2", "epsilon", "weight_decay", "l2", "momentum", "nesterov"),
        _MOMENTS,
    ),
    OptimizerRule(
        "adagrad",
        "AdaGrad",
        "Duchi, Hazan and Singer 2011, JMLR 12",
        rmsprop.match_adagrad,
        ("learning_rate", "epsilon", "weight_decay", "l2", "momentum", "nesterov"),
        ("second_moment",),
    ),
    OptimizerRule(
        "adafactor",
        "Adafactor",
        "Shazeer and Stern 2018, arXiv:1804.04235",
        adafactor.match,
        ("learning_rate", "beta2", "epsilon", "weight_decay", "momentum"),
        (*_MOMENTS, "second_moment_rows", "second_moment_columns"),
    ),
    OptimizerRule(
        "lamb", "LAMB", "You et al. 2020, arXiv:1904.00962", adam_like(find=adam_family.trusted_step), _ADAM_L2, _MOMENTS
    ),
    OptimizerRule(
        "nadam",
        "NAdam",
        "Dozat 2016; with decay as in Loshchilov and Hutter 2019, arXiv:1711.05101",
        nadam.match,
        _ADAM_L2,
        _MOMENTS,
        with_decay="nadamw",
    ),
    OptimizerRule(
        "amsgrad", "AMSGrad", "Reddi, Kale and Kumar 2018, arXiv:1904.09237", adam_like(adam_family.largest), _ADAM_L2, _MOMENTS
    ),
    OptimizerRule(
        "adamax", "AdaMax", "Kingma and Ba 2015, arXiv:1412.6980, section 7.1", adam_family.match_adamax, _ADAM_L2, _MOMENTS
    ),
    OptimizerRule(
        "ademamix",
        "AdEMAMix",
        "Pagliardini, Ablin and Grangier 2024, arXiv:2409.03137",
        adam_family.match_ademamix,
        ("learning_rate", "beta1", "beta2", "beta3", "alpha", "epsilon", "weight_decay", "l2"),
        ("first_moment", "first_moment_slow", "second_moment"),
    ),
    OptimizerRule(
        "adabelief", "AdaBelief", "Zhuang et al. 2020, arXiv:2010.07468", adam_like(adam_family.surprise), _ADAM_L2, _MOMENTS
    ),
    OptimizerRule(
        "adadelta",
        "Adadelta",
        "Zeiler 2012, arXiv:1212.5701",
        rmsprop.match_adadelta,
        ("learning_rate", "beta2", "epsilon", "weight_decay", "l2"),
        ("second_moment", "second_moment_of_steps"),
    ),
    OptimizerRule("yogi", "Yogi", "Zaheer et al. 2018, NeurIPS 31", adam_like(adam_family.towards_square), _ADAM_L2, _MOMENTS),
    OptimizerRule(
        "radam", "RAdam", "Liu et al. 2020, arXiv:1908.03265", adam_like(find=adam_family.rectified_step), _ADAM_L2, _MOMENTS
    ),
    OptimizerRule(
        "novograd", "NovoGrad", "Ginsburg et al. 2019, arXiv:1905.11286", layerwise.match_novograd, _ADAM_L2, _MOMENTS
    ),
    OptimizerRule(
        "lars",
        "LARS",
        "You, Gitman and Ginsburg 2017, arXiv:1708.03888",
        layerwise.match_lars,
        ("learning_rate", "momentum", "nesterov", "weight_decay"),
        ("first_moment",),
    ),
    OptimizerRule(
        "sm3",
        "SM3",
        "Anil et al. 2019, arXiv:1901.11150",
        sm3.match,
        ("learning_rate", "momentum", "epsilon", "weight_decay", "l2"),
        _MOMENTS,
    ),
    OptimizerRule(
        "muon",
        "Muon",
        "Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/",
        muon.match,
        ("learning_rate", "momentum", "nesterov", "weight_decay"),
        ("first_moment",),
    ),
    OptimizerRule(
        "schedule-free",
        "Schedule-free SGD and AdamW",
        "Defazio et al. 2024, arXiv:2405.15682",
        schedule_free.match,
        _ADAM,
        ("second_moment", "iterate"),
    ),
    OptimizerRule("sophia", "Sophia", "Liu et al. 2023, arXiv:2305.14342", sophia.match, _ADAM, _MOMENTS),
    OptimizerRule(
        "mars", "MARS", "Yuan et al. 2024, arXiv:2411.10438", adam_family.match_mars, _ADAM, (*_MOMENTS, "last_gradient")
    ),
    OptimizerRule("adopt", "ADOPT", "Taniguchi et al. 2024, arXiv:2411.02853", adopt.match, (*_ADAM, "nesterov"), _MOMENTS),
    OptimizerRule(
        "adabound",
        "AdaBound",
        "Luo et al. 2019, arXiv:1902.09843",
        adam_like(find=adam_family.limited_step),
        _ADAM_L2,
        _MOMENTS,
    ),
    OptimizerRule("rprop", "Rprop", "Riedmiller and Braun 1993, IEEE ICNN", rprop.match, (), ("step_size", "last_gradient")),
    OptimizerRule("ftrl", "FTRL-Proximal", "McMahan et al. 2013, KDD", ftrl.match, ("learning_rate",), _MOMENTS),
    OptimizerRule(
        "asgd",
        "Averaged SGD",
        "Polyak and Juditsky 1992, SIAM J. Control Optim. 30(4)",
        sgd.match_asgd,
        ("learning_rate", "weight_decay"),
        ("average",),
    ),
    OptimizerRule(
        "prodigy",
        "Prodigy",
        "Mishchenko and Defazio 2023, arXiv:2306.06101",
        distance_estimates.match_prodigy,
        _ADAM,
        (*_MOMENTS, "gradient_sum", "initial_weight", "distance", "distance_numerator"),
    ),
    OptimizerRule(
        "dadapt_adamw",
        "D-Adapt AdamW",
        "Defazio and Mishchenko 2023, arXiv:2301.07733",
        distance_estimates.match_dadapt_adamw,
        _ADAM,
        (*_MOMENTS, "gradient_sum", "distance", "distance_numerator"),
    ),
    OptimizerRule(
        "sign_sgd",
        "signSGD",
        "Bernstein et al. 2018, arXiv:1802.04434",
        signs.match_sign_sgd,
        ("learning_rate", "weight_decay", "l2"),
        (),
    ),
    OptimizerRule(
        "signum",
        "Signum",
        "Bernstein et al. 2018, arXiv:1802.04434",
        signs.match_signum,
        ("learning_rate", "momentum", "weight_decay", "l2"),
        ("first_moment",),
    ),
)
"""The common ones first. No update fits two of them, so the order changes no result."""


def claims_of(update: Update) -> Iterator[Claim]:
    """Yield the claims of the rules that explain an update.

    Constants can be anything: a rule makes no claim if arithmetic with them fails.
    """
    for rule in RULES:
        try:
            claim = rule.claim(update)
        except ArithmeticError:
            continue
        if claim is not None:
            yield claim
