"""What capture knows of functions and classes before it traces them: which are traced, which become nodes, which run as ordinary Python."""
