"""Where commands run: this computer or one over ssh; the programs, and the cleanup journal."""
