"""Bare systems: unpacked into folders, and entered in namespaces of their own.

Standard library only: what tries them runs with the Python of the computer.
"""
