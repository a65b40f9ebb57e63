"""The web console: what needs a person, why, and the one button for it; rendered here, live by server-sent events.

Not here: rules of its own, or rights of its own. It shows what controllers would decide, to viewers who may read that
anyway, and writes only with the viewer's own credentials.
"""
