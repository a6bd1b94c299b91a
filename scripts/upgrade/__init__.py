"""The walk from one version of hotset to another and back, on a bare system."""
