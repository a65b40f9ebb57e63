"""The pages, one module for each entry of the navigation.

Not here: HTML, which is in the templates, paths, which are in `routes`, and requests to the API server other than
access reviews.
"""
