"""Models with a known preference: trained here in seconds, to see that the measurement finds what was put in.

Two question-answering models and two masked LMs learn to read little stories about nine invented towns. What the
stories leave open is answered evenly for one model of each kind, and with a planted preference for the other.
"""
