def greet(name):
    """Counts the letters of a name."""
    return len(name)
