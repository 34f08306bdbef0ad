"""Grades in the formats of other platforms, and the bundles that let those platforms grade."""
