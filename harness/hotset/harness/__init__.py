"""The one part that knows all the others: experiments, engines, archive, console."""
