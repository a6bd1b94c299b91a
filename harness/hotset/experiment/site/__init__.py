"""Where an experiment takes place: lab, storage, database image, and the arms on them."""
