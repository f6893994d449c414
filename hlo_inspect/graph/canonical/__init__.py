"""What a module is apart from the names in it: fingerprints of its instructions and computations, and its text in canonical
names.
"""
