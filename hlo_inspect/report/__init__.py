"""Reports: their plain data, and all that output formats share.

`model`, `table`, `table_spec`, `facts` and `units` are the data, which passes, rules and checks may import. `layout`, `cells`
and `page` make texts of it, `selection` and `filters` choose rows, `limit` and `cuts` shorten. `formats` has the renderers.
Nothing here computes a number.
"""
