"""From operators to the loop IR: a rule for each kind of operator."""
