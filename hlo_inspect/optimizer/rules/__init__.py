"""The recognised optimizers, a row each. Equations, papers and states stand in the files of the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module

from hlo_inspect.optimizer.algebra.update import Claim, OptimizerRule, Update
from hlo_inspect.optimizer.rules import adam_family
from hlo_inspect.optimizer.rules.adam_family import adam_like

Match = Callable[[Update], Claim | None]


def _of_file(name: str, function: str = "match") -> Match:
    """Return a rule's function, whose file is imported for the first update that no earlier rule explains."""
    path = f"{__name__}.{name}"

    @cache
    def imported() -> Match:
        declared: Match = getattr(import_module(path), function)
        return declared

    def match(update: Update) -> Claim | None:
        return imported()(update)

    match.__module__ = path
    return match


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
        _of_file("sgd", "match_sgd"),
        ("learning_rate", "momentum", "nesterov", "weight_decay", "l2"),
        ("first_moment",),
    ),
    OptimizerRule(
        "lion",
        "Lion",
        "Chen et al. 2023, arXiv:2302.06675",
        _of_file("signs", "match_lion"),
        ("learning_rate", "beta1", "beta2", "weight_decay", "l2"),
        ("first_moment",),
    ),
    OptimizerRule(
        "rmsprop",
        "RMSProp",
        "Hinton 2012, lecture 6e; centered: Graves 2013, arXiv:1308.0850",
        _of_file("rmsprop", "match_rmsprop"),
        ("learning_rate", "beta2", "epsilon", "weight_decay", "l2", "momentum", "nesterov"),
        _MOMENTS,
    ),
    OptimizerRule(
        "adagrad",
        "AdaGrad",
        "Duchi, Hazan and Singer 2011, JMLR 12",
        _of_file("rmsprop", "match_adagrad"),
        ("learning_rate", "epsilon", "weight_decay", "l2", "momentum", "nesterov"),
        ("second_moment",),
    ),
    OptimizerRule(
        "adafactor",
        "Adafactor",
        "Shazeer and Stern 2018, arXiv:1804.04235",
        _of_file("adafactor"),
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
        _of_file("nadam"),
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
        _of_file("rmsprop", "match_adadelta"),
        ("learning_rate", "beta2", "epsilon", "weight_decay", "l2"),
        ("second_moment", "second_moment_of_steps"),
    ),
    OptimizerRule("yogi", "Yogi", "Zaheer et al. 2018, NeurIPS 31", adam_like(adam_family.towards_square), _ADAM_L2, _MOMENTS),
    OptimizerRule(
        "radam", "RAdam", "Liu et al. 2020, arXiv:1908.03265", adam_like(find=adam_family.rectified_step), _ADAM_L2, _MOMENTS
    ),
    OptimizerRule(
        "novograd",
        "NovoGrad",
        "Ginsburg et al. 2019, arXiv:1905.11286",
        _of_file("layerwise", "match_novograd"),
        _ADAM_L2,
        _MOMENTS,
    ),
    OptimizerRule(
        "lars",
        "LARS",
        "You, Gitman and Ginsburg 2017, arXiv:1708.03888",
        _of_file("layerwise", "match_lars"),
        ("learning_rate", "momentum", "nesterov", "weight_decay"),
        ("first_moment",),
    ),
    OptimizerRule(
        "sm3",
        "SM3",
        "Anil et al. 2019, arXiv:1901.11150",
        _of_file("sm3"),
        ("learning_rate", "momentum", "epsilon", "weight_decay", "l2"),
        _MOMENTS,
    ),
    OptimizerRule(
        "muon",
        "Muon",
        "Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/",
        _of_file("muon"),
        ("learning_rate", "momentum", "nesterov", "weight_decay"),
        ("first_moment",),
    ),
    OptimizerRule(
        "schedule-free",
        "Schedule-free SGD and AdamW",
        "Defazio et al. 2024, arXiv:2405.15682",
        _of_file("schedule_free"),
        _ADAM,
        ("second_moment", "iterate"),
    ),
    OptimizerRule("sophia", "Sophia", "Liu et al. 2023, arXiv:2305.14342", _of_file("sophia"), _ADAM, _MOMENTS),
    OptimizerRule(
        "mars", "MARS", "Yuan et al. 2024, arXiv:2411.10438", adam_family.match_mars, _ADAM, (*_MOMENTS, "last_gradient")
    ),
    OptimizerRule(
        "adopt", "ADOPT", "Taniguchi et al. 2024, arXiv:2411.02853", _of_file("adopt"), (*_ADAM, "nesterov"), _MOMENTS
    ),
    OptimizerRule(
        "adabound",
        "AdaBound",
        "Luo et al. 2019, arXiv:1902.09843",
        adam_like(find=adam_family.limited_step),
        _ADAM_L2,
        _MOMENTS,
    ),
    OptimizerRule(
        "rprop", "Rprop", "Riedmiller and Braun 1993, IEEE ICNN", _of_file("rprop"), (), ("step_size", "last_gradient")
    ),
    OptimizerRule("ftrl", "FTRL-Proximal", "McMahan et al. 2013, KDD", _of_file("ftrl"), ("learning_rate",), _MOMENTS),
    OptimizerRule(
        "asgd",
        "Averaged SGD",
        "Polyak and Juditsky 1992, SIAM J. Control Optim. 30(4)",
        _of_file("sgd", "match_asgd"),
        ("learning_rate", "weight_decay"),
        ("average",),
    ),
    OptimizerRule(
        "prodigy",
        "Prodigy",
        "Mishchenko and Defazio 2023, arXiv:2306.06101",
        _of_file("distance_estimates", "match_prodigy"),
        _ADAM,
        (*_MOMENTS, "gradient_sum", "initial_weight", "distance", "distance_numerator"),
    ),
    OptimizerRule(
        "dadapt_adamw",
        "D-Adapt AdamW",
        "Defazio and Mishchenko 2023, arXiv:2301.07733",
        _of_file("distance_estimates", "match_dadapt_adamw"),
        _ADAM,
        (*_MOMENTS, "gradient_sum", "distance", "distance_numerator"),
    ),
    OptimizerRule(
        "sign_sgd",
        "signSGD",
        "Bernstein et al. 2018, arXiv:1802.04434",
        _of_file("signs", "match_sign_sgd"),
        ("learning_rate", "weight_decay", "l2"),
        (),
    ),
    OptimizerRule(
        "signum",
        "Signum",
        "Bernstein et al. 2018, arXiv:1802.04434",
        _of_file("signs", "match_signum"),
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
