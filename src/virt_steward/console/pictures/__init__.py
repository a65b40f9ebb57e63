"""Pictures of the console: pure functions from what is known to records that templates draw as SVG.

Not here: colours and fonts, which are in the stylesheet, and any text that only a picture has. Each picture has a table
or a list with the same content beside it, and a shape or a word for each colour.
"""
