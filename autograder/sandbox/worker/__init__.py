"""All that runs in the process of student code: the worker, the layers that it puts on itself, the frames it speaks.

It imports torch, NumPy, einops and safetensors, and of the kit nothing but itself.
"""
