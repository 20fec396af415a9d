"""The settings of the rules: those that an Environment declares, with those of a configuration over them."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from plimsoll.model.api import Policies, PolicyConfig, RuleSetting
from plimsoll.model.meta import describe_errors, section
from plimsoll.policy.context import environment_of
from plimsoll.policy.fields import Manifest
from plimsoll.policy.rule_set import InvalidPoliciesError, settled


def declared_policies(environment: Mapping[str, Any] | None) -> Policies:
    """`policies` of an Environment's `spec`; the defaults without an Environment. Raises InvalidPoliciesError."""
    try:
        return Policies.model_validate(section(environment or {}, "policies"))
    except ValidationError as error:
        raise InvalidPoliciesError(f"policies of the Environment: {describe_errors(error, Policies)}") from None


def merged(declared: Policies, configured: Policies) -> Policies:
    """What is declared; a severity or an option that is configured replaces the declared one. All exemptions hold."""
    rules = dict(declared.rules)
    for name, setting in configured.rules.items():
        below = rules.get(name, RuleSetting())
        rules[name] = RuleSetting(
            severity=setting.severity or below.severity, options={**below.options, **setting.options}
        )
    exemptions = (*declared.exemptions, *configured.exemptions)
    return declared.model_copy(update={"rules": rules, "exemptions": exemptions})


def with_declared(manifests: Iterable[Manifest], config: PolicyConfig) -> PolicyConfig:
    """The configuration over what its `environment` declares, else the Environment among the objects.

    Raises InvalidPoliciesError, also for an unknown rule or option.
    """
    given = config.environment
    declared = declared_policies(given.manifest() if given is not None else environment_of(manifests))
    try:
        settled(declared)
    except InvalidPoliciesError as error:
        raise InvalidPoliciesError(f"policies of the Environment: {error.message}", error.hint) from None
    both = merged(declared, config)
    return config.model_copy(update={"rules": both.rules, "exemptions": both.exemptions})
