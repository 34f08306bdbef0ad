"""What a case is made of before it is stored: what is drawn, what its oracle says, what could not grade."""
