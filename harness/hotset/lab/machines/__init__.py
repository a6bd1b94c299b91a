"""Machines of the lab's own: chroot, User-Mode Linux, virtual machine."""
