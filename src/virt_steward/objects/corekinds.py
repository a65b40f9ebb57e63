"""Kinds that every cluster has, and that more than one package asks for."""

from virt_steward.objects.identity import Kind

NAMESPACE = Kind("", "Namespace", "namespaces")
NODE = Kind("", "Node", "nodes")
