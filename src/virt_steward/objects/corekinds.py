"""Built-in kinds that more than one package uses."""

from virt_steward.objects.identity import Kind

CONFIG_MAP = Kind("", "ConfigMap", "configmaps")
NAMESPACE = Kind("", "Namespace", "namespaces")
NODE = Kind("", "Node", "nodes")
