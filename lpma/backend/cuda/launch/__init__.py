"""Launching the kernels of a store, and compiling them.

kernels.py  launching: how large a grid each update gets
mailbox.py  answers in the host's memory
options.py  what they are compiled for
build.py    compiles them for a wheel to ship; warm_up.py: on a device, before they are needed
probe.py    whether a device can run them
"""
