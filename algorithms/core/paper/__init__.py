"""The programs that the k-core papers compare, chosen by `method=`; ours are one folder up."""
