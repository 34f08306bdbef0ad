"""`autograder new`: read a solution file, try its functions, write an assignment's files."""
