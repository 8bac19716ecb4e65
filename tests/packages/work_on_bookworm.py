"""Debian 12 (bookworm, glibc 2.36) as debootstrap makes it, with Python: the .deb, the wheel and the tar explain a missing library there,
and are gone when they are removed."""
from packages import *
from roots import Try

for works in deb_works, wheel_works, tar_works:
    with Try("bookworm") as inside:
        works(inside)
