"""What the views of a page are made of: a file for each kind of report."""
