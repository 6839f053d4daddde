"""The data of charts, in bounded memory."""
