"""Operators that rearrange elements without computing: views, their copying forms, joining and splitting, sizes."""
