"""What is to be done about the accelerated disks of a machine, and what is not known of them."""
