"""Changes that reboot nodes: the policy, the decision whether one is written now or staged, and the state of it.

What the change is, and how it is written, is not here: that is `converge`.
"""
