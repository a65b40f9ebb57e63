"""The page of the roles of people."""  # noqa: INP001 - beside a script

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tables import NOTICE, table

from virt_steward.packaging.roles import ABILITIES, UserRole, aggregated
from virt_steward.runtime.access import Installation

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLES = """{notice}# Who may do what

Four roles for people. Each has what those before it have. They are ClusterRoles, named `virt-steward-user-` and the
role, and come with every installation; `virt-steward roles` prints them. How to bind them:
[Give people roles](../howto/give-people-roles.md).

{abilities}
A right is checked twice. RBAC says which objects a person may write. The admission policies
(`virt-steward policies`) say what they may change on them:

- **VirtPlatformConfigs:** what can start a change needs the verb `approve`. `update` suffices as well: it is the
  right to write the whole object, and who had it could always set action Apply. So accounts that had all rights in
  0.1, or with the Go advisor, keep them.
- **InstallPlans, HyperConverged and Machines** belong to other projects. Who has `approve` on them, but not
  `update`, may change only what a decision changes: its annotations, and `spec.approved` of an InstallPlan.
  Everybody else is not concerned.
- `override-freeze` and `relax-approvals` are verbs of their own, which `update` does not include. `*`, as
  cluster-admin has, includes all.

Without the policies, `patch` on these objects is not limited. Kubernetes before 1.30 has no such policies, and OLM
does not install them.

## In the roles of Kubernetes

What a role grants on our own kinds is added to `view`, `edit` and `admin` of Kubernetes; `edit` includes `view`,
and `admin` includes `edit`:

{aggregated}
VirtPlatformConfigs and KubevirtConfigs are cluster-scoped. Only who has `view`, `edit` or `admin` by a
**ClusterRoleBinding** gets rights on them. A RoleBinding in a namespace adds one right: to read the
InstallPlanApprovers there. Rights on kinds of other projects are not added: an InstallPlan that is approved creates
ClusterRoles, so that is not for the admins of a namespace.
"""


def roles() -> str:
    abilities = [
        (
            ability.what,
            *("yes" if ability.role in role.included else "" for role in UserRole),
            "; ".join(map(str, ability.grants)) or ability.needs,
        )
        for ability in ABILITIES
    ]
    added = [(f"`{role['metadata']['name']}`", _rights(role)) for role in aggregated(Installation())]
    return ROLES.format(
        notice=NOTICE,
        abilities=table(("what", *UserRole, "rights that it needs"), abilities),
        aggregated=table(("ClusterRole", "adds"), added),
    )


def _rights(role: Mapping[str, Any]) -> str:
    return "; ".join(f"{', '.join(rule['verbs'])} on {', '.join(rule['resources'])}" for rule in role["rules"])
