"""The pictures of the theory lab, with your functions. There is nothing to complete in this file.

    python experiments.py                      all pictures, into the folder `pictures`
    python experiments.py --out some/folder
"""
