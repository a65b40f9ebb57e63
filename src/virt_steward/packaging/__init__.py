"""How the project is installed: the same parts as a kustomization, as a Helm chart and as an OLM bundle.

All of it is generated into `deploy/` and never edited there. `data` has the alerts and dashboards. Not here: the RBAC
of a part, which each controller declares itself.
"""
